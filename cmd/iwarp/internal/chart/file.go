package chart

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed plot.css
var plotStyle string

// WriteSVG writes the chart as a self-contained SVG file. It writes nothing if there is
// nothing to draw.
func (c *Chart) WriteSVG(w io.Writer) error {
	element, content, ok := strings.Cut(string(c.SVG()), ">")
	if !ok {
		return nil
	}
	_, err := fmt.Fprintf(w, `%s xmlns="http://www.w3.org/2000/svg" width="%d" height="%d">
<style>
%stext { font-family: system-ui, sans-serif; }
</style>
<rect width="100%%" height="100%%" fill="var(--back)"/>
%s
`, element, chartWidth, chartHeight, plotStyle, content)
	return err
}
