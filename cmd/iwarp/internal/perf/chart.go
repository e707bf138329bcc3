package perf

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// A chart is a line plot over sizes, as SVG. Both axes are logarithmic unless linear
// is set, which is for y.
type chart struct {
	title, unit string
	lines       []line
	linear      bool
	mark        float64 // a level to draw, 0: none
}

// A line is one series. class names its colour in the style sheet.
type line struct {
	name, class string
	points      []point
}

type point struct {
	x int // octets
	y float64
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

// extent is the range of all values, a little wider and never empty.
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

// values are all x and all y that can be drawn.
func (c *chart) values() (xs, ys []float64) {
	for _, l := range c.lines {
		for _, p := range l.points {
			if p.y > 0 {
				xs, ys = append(xs, float64(p.x)), append(ys, p.y)
			}
		}
	}
	if c.mark > 0 {
		ys = append(ys, c.mark)
	}
	if c.linear {
		ys = append(ys, 0)
	}
	return xs, ys
}

// svg draws the chart; empty if there is nothing to draw.
func (c *chart) svg() template.HTML {
	xs, ys := c.values()
	if len(xs) == 0 {
		return ""
	}
	x := scale{from: left, to: chartWidth - right, log: true}
	x.lo, x.hi = extent(xs, true)
	y := scale{from: chartHeight - bottom, to: top, log: !c.linear}
	y.lo, y.hi = extent(ys, !c.linear)
	pad := (y.hi - y.lo) * 0.06
	y.hi += pad
	if !c.linear {
		y.lo -= pad
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`,
		chartWidth, chartHeight, template.HTMLEscapeString(c.title))
	c.axes(&b, x, y)
	if c.mark > 0 {
		fmt.Fprintf(&b, `<path class="mark" d="M%d %.1fH%d"/>`, left, y.at(c.mark), chartWidth-right)
	}
	labels := make([]float64, 0, len(c.lines))
	for _, l := range c.lines {
		labels = l.draw(&b, x, y, labels)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // everything in it is ours or escaped
}

// axes draws grid and labels: a line for each size, and a few levels.
func (c *chart) axes(b *strings.Builder, x, y scale) {
	for e := math.Ceil(x.lo/2) * 2; e <= x.hi; e += 2 {
		n := int(math.Exp2(e))
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %dV%d"/>`, x.at(float64(n)), top, chartHeight-bottom)
		fmt.Fprintf(b, `<text class="x" x="%.1f" y="%d">%s</text>`, x.at(float64(n)), chartHeight-bottom+16, sizeName(n))
	}
	for _, v := range c.levels(y) {
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fH%d"/>`, left, y.at(v), chartWidth-right)
		fmt.Fprintf(b, `<text class="y" x="%d" y="%.1f">%s</text>`, left-6, y.at(v)+4, short(v))
	}
	fmt.Fprintf(b, `<text class="unit" x="4" y="%d">%s</text>`, top-5, template.HTMLEscapeString(c.unit))
}

// short is number without zeros at the end.
func short(v float64) string {
	s := number(&v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// levels are round values of y: at most about six.
func (c *chart) levels(y scale) []float64 {
	var vs []float64
	if c.linear {
		step := math.Pow(10, math.Floor(math.Log10((y.hi-y.lo)/2)))
		for (y.hi-y.lo)/step > 6 {
			step *= 2
		}
		for v := math.Ceil(y.lo/step) * step; v <= y.hi; v += step {
			vs = append(vs, v)
		}
		return vs
	}
	step := math.Max(1, math.Ceil((y.hi-y.lo)/6))
	for e := math.Ceil(y.lo); e <= y.hi; e += step {
		vs = append(vs, math.Exp2(e))
	}
	return vs
}

// draw draws the line, its points, and its name at the end, clear of the names that
// are there already.
func (l *line) draw(b *strings.Builder, x, y scale, labels []float64) []float64 {
	var at []string
	end := 0.0
	for _, p := range l.points {
		if p.y > 0 {
			end = y.at(p.y)
			at = append(at, fmt.Sprintf("%.1f,%.1f", x.at(float64(p.x)), end))
		}
	}
	if len(at) == 0 {
		return labels
	}
	fmt.Fprintf(b, `<polyline class="line %s" points="%s"/>`, l.class, strings.Join(at, " "))
	for _, p := range l.points {
		if p.y > 0 {
			fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s %s: %s</title></circle>`, l.class,
				x.at(float64(p.x)), y.at(p.y), template.HTMLEscapeString(l.name), sizeName(p.x), number(&p.y))
		}
	}
	end = apart(end, labels)
	fmt.Fprintf(b, `<text class="name %s" x="%d" y="%.1f">%s</text>`, l.class, chartWidth-right+10, end+4, template.HTMLEscapeString(l.name))
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
