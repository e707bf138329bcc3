package program

import (
	"fmt"
	"strconv"
	"strings"
)

// maxConns is how many connections a program has at most.
const maxConns = 4

// A Program is what is run.
type Program struct {
	Conns   int      // connections between the two hosts
	SRQ     bool     // all responders share a receive queue
	Ops     []Op     // in the order of execution
	Configs []Config // to run it over; none: those that the caller chooses
}

// String is the text of the program, which Parse reads.
func (p Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "connections %d\n", p.Conns)
	if p.SRQ {
		b.WriteString("srq\n")
	}
	for _, c := range p.Configs {
		fmt.Fprintf(&b, "config %v\n", c)
	}
	for _, o := range p.Ops {
		fmt.Fprintln(&b, o)
	}
	return b.String()
}

// Parse reads the text of a program. What follows # in a line is a comment.
func Parse(text string) (Program, error) {
	p := Program{Conns: 1}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := p.parseLine(line); err != nil {
			return Program{}, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	for _, o := range p.Ops {
		if o.End.Conn >= p.Conns {
			return Program{}, fmt.Errorf("%v: there are %d connections", o, p.Conns)
		}
	}
	return p, nil
}

func (p *Program) parseLine(line string) (err error) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "connections":
		p.Conns, err = strconv.Atoi(strings.TrimSpace(rest))
		if err == nil && (p.Conns < 1 || p.Conns > maxConns) {
			err = fmt.Errorf("%d connections, want 1 to %d", p.Conns, maxConns)
		}
		return err
	case "srq":
		p.SRQ = true
		return nil
	case "config":
		c, err := ParseConfig(rest)
		p.Configs = append(p.Configs, c)
		return err
	}
	o, err := parseOp(line)
	p.Ops = append(p.Ops, o)
	return err
}
