package chart

import (
	_ "embed"
	"html/template"
	"io"
	"unicode"
	"unicode/utf8"
)

// A Page is a report with plots and a table, which needs nothing else.
type Page struct {
	Title, Lead string
	Facts       [][2]string // names and values
	Charts      []Chart     // of which empty ones are left out
	Head        []string
	Rows        [][]Cell
}

// A Cell is one field of the table.
type Cell struct {
	Text  string
	Class string // Met, Missed or empty
}

// Classes of cells.
const (
	Met    = "met"
	Missed = "missed"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Style is how plots look.
func (p *Page) Style() template.CSS { return template.CSS(plotStyle) } // a file of ours

// Align is the class of a column of texts, one of which begins with a letter; of numbers it is empty.
func (p *Page) Align(column int) string {
	for _, row := range p.Rows {
		if first, _ := utf8.DecodeRuneInString(row[column].Text); unicode.IsLetter(first) {
			return "text"
		}
	}
	return ""
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return pageTemplate.Execute(w, p) }

// A Drawing is a chart as it is on the page.
type Drawing struct {
	Title string
	SVG   template.HTML
}

// Drawn are the charts that have something to show.
func (p *Page) Drawn() (all []Drawing) {
	for _, c := range p.Charts {
		if svg := c.SVG(); svg != "" {
			all = append(all, Drawing{c.Title, svg})
		}
	}
	return all
}

// Verdict is the field that tells whether a target was met; nil: there is none.
func Verdict(met *bool) Cell {
	switch {
	case met == nil:
		return Cell{}
	case *met:
		return Cell{"yes", Met}
	}
	return Cell{"no", Missed}
}

// Texts are fields without a class.
func Texts(texts ...string) (all []Cell) {
	for _, t := range texts {
		all = append(all, Cell{Text: t})
	}
	return all
}
