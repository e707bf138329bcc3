package perf

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
	c := chart{title: "a < b", unit: "GB/s", mark: 1, lines: []line{
		{"write", "c1", []point{{64, 0.1}, {4096, 2}, {1 << 20, 5}}},
		{"tcp write", "c1 base", []point{{64, 5}, {4096, 0}, {1 << 20, 5}}},
	}}
	svg := string(c.svg())
	wellFormed(t, svg)
	require.Contains(t, svg, "a &lt; b", "text is escaped")
	require.Contains(t, svg, ">64K<", "sizes along the axis")
	require.Equal(t, 5, strings.Count(svg, "<circle"), "a point for each value but zero")
	require.NotContains(t, svg, "NaN")
	require.NotContains(t, svg, "%!", "no mistake in a format")

	c.linear = true
	wellFormed(t, string(c.svg()))
	require.NotContains(t, string(c.svg()), "NaN")
}

func TestChartOfOnePoint(t *testing.T) {
	c := chart{lines: []line{{"write", "c1", []point{{64, 1}}}}}
	svg := string(c.svg())
	wellFormed(t, svg)
	require.NotContains(t, svg, "NaN", "a range of one value has a width")
	require.Empty(t, (&chart{}).svg(), "nothing to draw")
}

func TestLabelsKeepApart(t *testing.T) {
	require.Equal(t, 10.0, apart(10, nil))
	require.Equal(t, 24.0, apart(12, []float64{10}), "a line of text below")
	require.Equal(t, 38.0, apart(12, []float64{10, 24}), "and below the next")
}
