// Package chart draws line plots as SVG, for self-contained pages.
package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// A Chart is a line plot. The x are sizes in octets, on a logarithmic axis, unless Over names them:
// then that axis is linear and begins with 0.
type Chart struct {
	Title, Unit string // Unit is that of y
	Over        string // the name of x
	Lines       []Line
	Linear      bool    // the axis of y, which is logarithmic otherwise
	Mark        float64 // a level to draw, 0: none
}

// A Line is one series. Class names its colour in the style sheet.
type Line struct {
	Name, Class string
	Points      []Point
}

// A Point is one value of a series.
type Point struct{ X, Y float64 }

// Add appends a line, if it has points.
func (c *Chart) Add(name, class string, points []Point) {
	if len(points) > 0 {
		c.Lines = append(c.Lines, Line{name, class, points})
	}
}

const (
	chartWidth, chartHeight = 640, 320
	left, right             = 64, 130 // room for the labels
	top, bottom             = 16, 36
)

// A scale maps values to a range of pixels.
type scale struct {
	lo, hi   float64 // of the values, or of their logarithms
	from, to float64
	log      bool
}

func (s scale) at(v float64) float64 {
	if s.log {
		v = math.Log2(v)
	}
	return s.from + (v-s.lo)/(s.hi-s.lo)*(s.to-s.from)
}

// extent returns the range of all values, a little wider and never empty.
func extent(values []float64, log bool) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if log {
			v = math.Log2(v)
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	if lo >= hi {
		lo, hi = lo-1, lo+1
	}
	return lo, hi
}

// values returns all values of x and of y that can be drawn.
func (c *Chart) values() (xs, ys []float64) {
	for _, l := range c.Lines {
		for _, p := range l.Points {
			if c.drawn(p) {
				xs, ys = append(xs, p.X), append(ys, p.Y)
			}
		}
	}
	if c.Mark > 0 {
		ys = append(ys, c.Mark)
	}
	if c.Linear {
		ys = append(ys, 0)
	}
	return xs, ys
}

// drawn reports whether a value has a place on the axis.
func (c *Chart) drawn(p Point) bool { return p.Y > 0 || c.Linear && p.Y == 0 }

// SVG draws the chart; empty if there is nothing to draw.
func (c *Chart) SVG() template.HTML {
	xs, ys := c.values()
	if len(xs) == 0 {
		return ""
	}
	if c.Over != "" {
		xs = append(xs, 0)
	}
	x := scale{from: left, to: chartWidth - right, log: c.Over == ""}
	x.lo, x.hi = extent(xs, x.log)
	y := scale{from: chartHeight - bottom, to: top, log: !c.Linear}
	y.lo, y.hi = extent(ys, !c.Linear)
	pad := (y.hi - y.lo) * 0.06
	y.hi += pad
	if !c.Linear {
		y.lo -= pad
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`,
		chartWidth, chartHeight, template.HTMLEscapeString(c.Title))
	c.axes(&b, x, y)
	if c.Mark > 0 {
		fmt.Fprintf(&b, `<path class="mark" d="M%d %.1fH%d"/>`, left, y.at(c.Mark), chartWidth-right)
	}
	labels := make([]float64, 0, len(c.Lines))
	for _, l := range c.Lines {
		labels = c.draw(&l, &b, x, y, labels)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // everything in it is a constant or escaped
}

// axes draws grid and labels: a line for each size, and a few levels.
func (c *Chart) axes(b *strings.Builder, x, y scale) {
	for _, v := range c.steps(x) {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %dV%d"/>`, x.at(v), top, chartHeight-bottom)
		fmt.Fprintf(b, `<text class="x" x="%.1f" y="%d">%s</text>`, x.at(v), chartHeight-bottom+16, c.label(v))
	}
	over := cmp.Or(c.Over, "octets")
	fmt.Fprintf(b, `<text class="unit" x="%d" y="%d">%s</text>`, chartWidth-right+24, chartHeight-bottom+16, template.HTMLEscapeString(over))
	for _, v := range levels(y) {
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fH%d"/>`, left, y.at(v), chartWidth-right)
		fmt.Fprintf(b, `<text class="y" x="%d" y="%.1f">%s</text>`, left-6, y.at(v)+4, short(v))
	}
	fmt.Fprintf(b, `<text class="unit" x="4" y="%d">%s</text>`, top-5, template.HTMLEscapeString(c.Unit))
}

// short returns number without trailing zeros.
func short(v float64) string {
	s := Number(v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// steps returns the round values of x.
func (c *Chart) steps(x scale) (vs []float64) {
	if !x.log {
		return levels(x)
	}
	for e := math.Ceil(x.lo/2) * 2; e <= x.hi; e += 2 {
		vs = append(vs, math.Exp2(e))
	}
	return vs
}

// label returns the text of an x.
func (c *Chart) label(x float64) string {
	if c.Over != "" {
		return short(x)
	}
	return SizeName(int(x))
}

// levels returns round values of an axis: at most about six.
func levels(y scale) []float64 {
	var vs []float64
	if !y.log {
		step := math.Pow(10, math.Floor(math.Log10((y.hi-y.lo)/2)))
		for (y.hi-y.lo)/step > 6 {
			step *= 2
		}
		for v := math.Ceil(y.lo/step) * step; v <= y.hi; v += step {
			vs = append(vs, v)
		}
		return vs
	}
	if y.hi-y.lo < 3 { // too few powers of two
		return levels(scale{lo: math.Exp2(y.lo), hi: math.Exp2(y.hi)})
	}
	step := math.Max(1, math.Ceil((y.hi-y.lo)/6))
	for e := math.Ceil(y.lo); e <= y.hi; e += step {
		vs = append(vs, math.Exp2(e))
	}
	return vs
}

// draw draws a line, its points if there are few, and its name at the end, clear of the names that
// are already drawn.
func (c *Chart) draw(l *Line, b *strings.Builder, x, y scale, labels []float64) []float64 {
	var at []string
	end := 0.0
	for _, p := range l.Points {
		if c.drawn(p) {
			end = y.at(p.Y)
			at = append(at, fmt.Sprintf("%.1f,%.1f", x.at(p.X), end))
		}
	}
	if len(at) == 0 {
		return labels
	}
	fmt.Fprintf(b, `<polyline class="line %s" points="%s"/>`, l.Class, strings.Join(at, " "))
	for _, p := range l.Points {
		if c.drawn(p) && c.Over == "" {
			fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s %s: %s</title></circle>`, l.Class,
				x.at(p.X), y.at(p.Y), template.HTMLEscapeString(l.Name), c.label(p.X), Number(p.Y))
		}
	}
	end = apart(end, labels)
	fmt.Fprintf(b, `<text class="name %s" x="%d" y="%.1f">%s</text>`, l.Class, chartWidth-right+10, end+4, template.HTMLEscapeString(l.Name))
	return append(labels, end)
}

// apart moves y until it is a line of text away from all others.
func apart(y float64, others []float64) float64 {
	const height = 14
	for moved := true; moved; {
		moved = false
		for _, o := range others {
			if math.Abs(y-o) < height-0.01 {
				y, moved = o+height, true
			}
		}
	}
	return y
}

// Number shows three significant digits.
func Number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', min(digits, 4), 64)
}

// SizeName returns the shortest name of a size.
func SizeName(n int) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "G"}, {20, "M"}, {10, "K"}} {
		if n > 0 && n&(1<<u.shift-1) == 0 {
			return strconv.Itoa(n>>u.shift) + u.name
		}
	}
	return strconv.Itoa(n)
}
