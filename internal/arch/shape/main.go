// Command shape prints the numbers by which the structure of the module is judged, together with the goals.
//
//	go run ./internal/arch/shape                       # the root package
//	go run ./internal/arch/shape ./transport ./rdmap   # others
//	go run ./internal/arch/shape -word 'all words?'    # where a word is; its scope as in internal/arch/testdata/words.txt
//	go run ./internal/arch/shape -dir $(go list -m -f {{.Dir}} golang.org/x/net) ./quic
//
// The documentation of package measure says what counts as an arrow, a call, and so on. The tests
// of internal/arch enforce the numbers.
package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/goiwarp/iwarp/internal/arch/measure"
)

const module = "github.com/goiwarp/iwarp"

func main() {
	dir := flag.String("dir", ".", "the root of the module")
	names := flag.Bool("names", false, "list the arrows without calls, too")
	word := flag.String("word", "", "print the places of a word instead, with its scope as in internal/arch/testdata/words.txt")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	var err error
	if *word != "" {
		err = printWord(os.Stdout, *dir, *word)
	} else {
		err = run(os.Stdout, *dir, patterns, *names)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, dir string, patterns []string, names bool) error {
	packages, err := measure.Load(dir, patterns...)
	if err != nil {
		return err
	}
	files, err := measure.GoFiles(dir)
	if err != nil {
		return err
	}
	ours := packages[0].Module == module
	for _, p := range packages {
		if p.Asked {
			printPackage(w, p, files, names)
		}
	}
	if ours {
		if err := printConnection(w, packages); err != nil {
			return err
		}
	}
	printPackages(w, packages, files)
	printFuncs(w, files, func(f measure.Func) bool {
		return ours || slices.ContainsFunc(packages, func(p *measure.Package) bool {
			return strings.HasPrefix(f.File, p.Below()+"/")
		})
	})
	return nil
}

// printWord prints the places of a word.
func printWord(w io.Writer, dir, word string) error {
	pattern, err := measure.ParseWord(word)
	if err != nil {
		return err
	}
	files, err := measure.GoFiles(dir)
	if err != nil {
		return err
	}
	texts, err := measure.Texts(dir, files)
	if err != nil {
		return err
	}
	for _, t := range texts {
		for _, p := range pattern.Find(t) {
			fmt.Fprintf(w, "%s:%d: %s\n", t.Path, p.Line, p.Text)
		}
	}
	return nil
}

func printPackage(w io.Writer, p *measure.Package, files []*measure.File, names bool) {
	arrows := p.Arrows()
	order := measure.BestOrder(arrows, measure.Unit)
	weighted := measure.BestOrder(arrows, (*measure.Arrow).Weight)
	all := measure.BestOrder(measure.WithNames(arrows), measure.Unit)
	methods, in := p.Methods("QP")

	goal := func(s string) string {
		if p.Path == module {
			return s
		}
		return ""
	}
	long, longer := measure.Longer(files, p.Below(), 400), measure.Longer(files, p.Below(), 600)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "package %s\tnow\t%s\n", p.Path, goal("goal"))
	fmt.Fprintf(t, "arrows that run back up\t%s\t%s\n", share(order), goal("< 15 %"))
	fmt.Fprintf(t, "  weighted with the number of uses\t%s\t\n", share(weighted))
	fmt.Fprintf(t, "  with types, fields, variables, constants\t%s\t\n", share(all))
	fmt.Fprintf(t, "files that lead to one another\t%d of %d\t\n", order.Largest, len(p.Files))
	fmt.Fprintf(t, "lines of code without tests\t%d\t%s\n", measure.Code(files)[p.Below()], goal("<= 4000"))
	fmt.Fprintf(t, "  with comments and empty lines\t%d\t\n", measure.Lines(files)[p.Below()])
	fmt.Fprintf(t, "methods of QP\t%d in %d files\t\n", methods, in)
	fmt.Fprintf(t, "files of more than 400 lines\t%d\t\n", len(long))
	fmt.Fprintf(t, "files of more than 600 lines\t%d\t%s\n", len(longer), goal("0"))
	t.Flush()
	if len(long) > 0 {
		fmt.Fprintf(w, "More than 400 lines: %s\n", strings.Join(long, " "))
	}

	fmt.Fprintf(w, "\nThe order with the fewest arrows up:\n%s\n\nArrows up, with uses:\n", strings.Join(order.Files, " "))
	for _, a := range order.Up {
		fmt.Fprintf(w, "  %s -> %s: %s\n", a.From, a.To, uses(a.Calls))
	}
	if names {
		fmt.Fprintf(w, "\nArrows without calls, with uses:\n")
		for _, a := range arrows {
			if len(a.Calls) == 0 {
				fmt.Fprintf(w, "  %s -> %s: %s\n", a.From, a.To, uses(a.Names))
			}
		}
	}
	fmt.Fprintln(w)
}

func share(o *measure.Order) string {
	return fmt.Sprintf("%.1f %% (%d of %d)", o.Percent(), o.UpN, o.All)
}

// uses lists the used names, the most often used first.
func uses(n map[string]int) string {
	keys := slices.SortedFunc(maps.Keys(n), func(a, b string) int {
		if n[a] != n[b] {
			return n[b] - n[a]
		}
		return strings.Compare(a, b)
	})
	for i, k := range keys {
		if n[k] > 1 {
			keys[i] = fmt.Sprintf("%s (%d)", k, n[k])
		}
	}
	return strings.Join(keys, ", ")
}

func printConnection(w io.Writer, packages []*measure.Package) error {
	s, err := measure.QP.Shape(packages)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "one connection\tnow\tgoal\n")
	fmt.Fprintf(t, "atomics of the engine (root, internal)\t%d\t<= 20\n", len(measure.Engine(s.Atomics)))
	fmt.Fprintf(t, "  and of the layers below\t%d\t\n", len(s.Atomics))
	fmt.Fprintf(t, "mutexes of the engine\t%d\t\n", len(measure.Engine(s.Mutexes)))
	fmt.Fprintf(t, "  and of the layers below\t%d\t\n", len(s.Mutexes))
	t.Flush()
	printFields(w, "atomics", s.Atomics)
	printFields(w, "mutexes", s.Mutexes)
	fmt.Fprintln(w)
	return nil
}

func printFields(w io.Writer, what string, fields []measure.Field) {
	in := make(map[string][]string)
	for _, f := range fields {
		in[f.In] = append(in[f.In], f.Path)
	}
	for _, p := range slices.Sorted(maps.Keys(in)) {
		fmt.Fprintf(w, "%s of %s (%d): %s\n", what, p, len(in[p]), strings.Join(in[p], " "))
	}
}

func printPackages(w io.Writer, packages []*measure.Package, files []*measure.File) {
	lines := measure.Lines(files)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "files\tlines\t> 400\tup\tweighted\t  package\n")
	for _, p := range packages {
		arrows := p.Arrows()
		below := p.Below()
		fmt.Fprintf(t, "%d\t%d\t%d\t%.1f %%\t%.1f %%\t  %s\n", len(p.Files), lines[below], len(measure.Longer(files, below, 400)),
			measure.BestOrder(arrows, measure.Unit).Percent(), measure.BestOrder(arrows, (*measure.Arrow).Weight).Percent(), below)
		delete(lines, below)
	}
	for _, below := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(t, "\t%d\t%d\t\t\t  %s\n", lines[below], len(measure.Longer(files, below, 400)), below)
	}
	t.Flush()
}

func printFuncs(w io.Writer, files []*measure.File, of func(measure.Func) bool) {
	fmt.Fprintf(w, "\nFunctions of more than %d lines, or with a cyclomatic number over %d (goal: none):\n", measure.MaxLines, measure.MaxCyclomatic)
	for _, f := range measure.FuncsOver(files) {
		if of(f) {
			fmt.Fprintf(w, "  %s %s: %d lines, %d\n", f.File, f.Name, f.Lines, f.Cyclomatic)
		}
	}
}
