package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func wellFormed(t *testing.T, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, "every element is closed")
	}
}

func TestChart(t *testing.T) {
	c := Chart{Title: "a < b", Unit: "GB/s", Mark: 1, Lines: []Line{
		{"write", "c1", []Point{{64, 0.1}, {4096, 2}, {1 << 20, 5}}},
		{"tcp write", "c1 base", []Point{{64, 5}, {4096, 0}, {1 << 20, 5}}},
	}}
	svg := string(c.SVG())
	wellFormed(t, svg)
	require.Contains(t, svg, "a &lt; b", "text is escaped")
	require.Contains(t, svg, ">64K<", "sizes along the axis")
	require.Contains(t, svg, ">octets<")
	require.Equal(t, 5, strings.Count(svg, "<circle"), "a point for each value but zero")
	require.NotContains(t, svg, "NaN")
	require.NotContains(t, svg, "%!", "no mistake in a format")

	c.Linear = true
	wellFormed(t, string(c.SVG()))
	require.NotContains(t, string(c.SVG()), "NaN")
}

func TestChartOfOnePoint(t *testing.T) {
	c := Chart{Lines: []Line{{"write", "c1", []Point{{64, 1}}}}}
	svg := string(c.SVG())
	wellFormed(t, svg)
	require.NotContains(t, svg, "NaN", "a range of one value has a width")
	require.Empty(t, (&Chart{}).SVG(), "nothing to draw")
}

// TestChartOverTime has a linear axis, and no circles on thousands of points.
func TestChartOverTime(t *testing.T) {
	c := Chart{Unit: "KiB", Over: "ms", Linear: true, Lines: []Line{{"backlog", "c1", []Point{{10, 0}, {250, 5}, {500, 3}}}}}
	svg := string(c.SVG())
	wellFormed(t, svg)
	require.Contains(t, svg, ">ms<")
	require.Contains(t, svg, ">400<")
	require.NotContains(t, svg, "<circle")
	require.Contains(t, svg, "64.0", "it begins with 0")
}

// TestChartInAFile is an SVG file with the style of its own.
func TestChartInAFile(t *testing.T) {
	c := Chart{Title: "a > b", Unit: "KiB", Over: "ms", Lines: []Line{{"backlog", "c1", []Point{{10, 2}, {250, 5}}}}}
	var b strings.Builder
	require.NoError(t, c.WriteSVG(&b))
	wellFormed(t, b.String())
	require.True(t, strings.HasPrefix(b.String(), "<svg "))
	require.Contains(t, b.String(), `xmlns="http://www.w3.org/2000/svg"`)
	require.Contains(t, b.String(), "--c1:")
	require.NotContains(t, b.String(), "%!")
	b.Reset()
	require.NoError(t, (&Chart{}).WriteSVG(&b))
	require.Empty(t, b.String(), "nothing to draw")
}

// TestColumnsOfTextsAreOnTheLeft, their headings too, and numbers on the right.
func TestColumnsOfTextsAreOnTheLeft(t *testing.T) {
	p := Page{Head: []string{"case", "value", "unit"}, Rows: [][]Cell{Texts("a", "-", ""), Texts("b", "<= 2", "GB/s")}}
	require.Equal(t, []string{"text", "", "text"}, []string{p.Align(0), p.Align(1), p.Align(2)})
	var b strings.Builder
	require.NoError(t, p.Write(&b))
	require.Contains(t, b.String(), `<th class="text">unit</th>`)
	require.Contains(t, b.String(), `<th>value</th>`)
}

func TestLabelsKeepApart(t *testing.T) {
	require.Equal(t, 10.0, apart(10, nil))
	require.Equal(t, 24.0, apart(12, []float64{10}), "a line of text below")
	require.Equal(t, 38.0, apart(12, []float64{10, 24}), "and below the next")
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		s    scale
		want []float64
	}{
		{scale{lo: 0, hi: 1}, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{scale{lo: 0, hi: 12, log: true}, []float64{1, 4, 16, 64, 256, 1024, 4096}},
		{scale{lo: 1, hi: 2.6, log: true}, []float64{2, 3, 4, 5, 6}}, // not only 2 and 4
	} {
		require.InDeltaSlice(t, c.want, levels(c.s), 1e-9)
	}
}
