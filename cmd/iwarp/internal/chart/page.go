package chart

import (
	_ "embed"
	"html/template"
	"io"
	"unicode"
	"unicode/utf8"
)

// A Page is a self-contained report with plots and a table.
type Page struct {
	Title, Lead string
	Facts       [][2]string // names and values
	Charts      []Chart     // empty charts are omitted
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

// Style returns the style sheet of plots.
func (p *Page) Style() template.CSS { return template.CSS(plotStyle) } // a file of ours

// Align returns the class of a column: that of texts if one of its fields begins with a letter; for numbers it is empty.
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

// Drawn returns the charts that have something to show.
func (p *Page) Drawn() (all []Drawing) {
	for _, c := range p.Charts {
		if svg := c.SVG(); svg != "" {
			all = append(all, Drawing{c.Title, svg})
		}
	}
	return all
}

// Verdict returns the field that tells whether a target was met; nil: there is none.
func Verdict(met *bool) Cell {
	switch {
	case met == nil:
		return Cell{}
	case *met:
		return Cell{"yes", Met}
	}
	return Cell{"no", Missed}
}

// Texts returns fields without a class.
func Texts(texts ...string) (all []Cell) {
	for _, t := range texts {
		all = append(all, Cell{Text: t})
	}
	return all
}
