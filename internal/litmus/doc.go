package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/goiwarp/iwarp"
)

//go:embed ordering.txt
var introduction string

// writeDoc writes docs/ordering.md.
func writeDoc(w io.Writer) error {
	b := new(strings.Builder)
	b.WriteString(introduction)
	for _, g := range groups {
		fmt.Fprintf(b, "\n## %s\n", g.title)
		for i := range g.programs {
			if err := g.programs[i].write(b); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (q *program) write(b *strings.Builder) error {
	if _, err := compile(q); err != nil {
		return err
	}
	fmt.Fprintf(b, "\n### %s\n\n%s (%s)\n\n```\n", strings.ReplaceAll(q.name, "|", "/"), q.says, q.rule)
	for _, ops := range q.threads {
		fmt.Fprintln(b, threadText(ops))
	}
	if len(q.final) > 0 {
		fmt.Fprintf(b, "in the end: %s\n", sightsText(q.final))
	}
	b.WriteString("```\n\n| Outcome | | TCP | SCTP | |\n|---|---|---|---|---|\n")
	for _, o := range q.outcomes {
		fmt.Fprintf(b, "| %s | %v | %s | %s | %s |\n", cmp.Or(o.when, "anything else"), o.is, o.occurs(inOrder), o.occurs(reordering), o.why)
	}
	return nil
}

// occurs describes whether an outcome occurs over a kind of layer.
func (o *outcome) occurs(kind layers) string {
	switch {
	case o.is == forbidden:
		return "never"
	case o.is == required, o.seen&kind != 0:
		return "seen"
	case o.never&kind != 0:
		return "never"
	default:
		return "rare"
	}
}

// threadText returns a thread as the document shows it.
func threadText(ops []op) string {
	var texts []string
	for _, o := range ops {
		t := o.text()
		if o.verb != 0 && o.at != ops[0].at {
			t += " on " + o.at.String()
		}
		texts = append(texts, t)
	}
	return ops[0].at.String() + ":  " + strings.Join(texts, ";  ")
}

func (o *op) text() string {
	if o.verb == 0 {
		return "wait"
	}
	t := o.operation()
	if o.flags&iwarp.ReadFence != 0 {
		t = "fenced " + t
	}
	if o.flags&iwarp.LocalFence != 0 {
		t = "locally fenced " + t
	}
	if o.flags&iwarp.Solicited != 0 {
		t = "solicited " + t
	}
	if o.as != "" {
		t = o.as + " = " + t
	}
	if len(o.sees) > 0 && o.isMessage() {
		t += ", its receiver finds " + sightsText(o.sees)
	} else if len(o.sees) > 0 {
		t += ", and then " + sightsText(o.sees)
	}
	return t
}

// operation returns the verb and its object.
func (o *op) operation() string {
	switch o.verb {
	case iwarp.OpRDMAWrite:
		return fmt.Sprintf("Write %v=%d", o.on, o.value)
	case iwarp.OpRDMAWriteImm:
		return fmt.Sprintf("Write %v=%d with Immediate %d", o.on, o.value, o.value)
	case iwarp.OpRDMARead, iwarp.OpRDMAReadInvalidate:
		return o.readText()
	case iwarp.OpSend:
		if o.into != nothing {
			return fmt.Sprintf("Send %d into %v", o.value, o.into)
		}
		return fmt.Sprintf("Send %d", o.value)
	case iwarp.OpSendInvalidate:
		return fmt.Sprintf("Send %d with Invalidate of %v", o.value, o.on)
	case iwarp.OpImmediate:
		return fmt.Sprintf("Immediate %d", o.value)
	case iwarp.OpFetchAdd:
		return fmt.Sprintf("Fetch and Add %v, %d", o.on, o.value)
	case iwarp.OpCompareSwap:
		return fmt.Sprintf("Compare and Swap %v, 0 to %d", o.on, o.value)
	case iwarp.OpCommit:
		if o.store {
			return fmt.Sprintf("Commit %v, follow-on c=%d", o.on, o.value)
		}
		return fmt.Sprintf("Commit %v", o.on)
	default:
		return fmt.Sprintf("%v of %v", o.verb, o.into)
	}
}

func (o *op) readText() string {
	switch {
	case o.on == nothing:
		return "Read of nothing"
	case o.verb == iwarp.OpRDMAReadInvalidate:
		return fmt.Sprintf("Read %v into %v with Local Invalidate", o.on, o.into)
	case o.into != nothing:
		return fmt.Sprintf("Read %v into %v", o.on, o.into)
	default:
		return fmt.Sprintf("Read %v", o.on)
	}
}

func sightsText(sights []sight) string {
	var names []string
	for _, s := range sights {
		names = append(names, s.as)
	}
	return strings.Join(names, ", ")
}
