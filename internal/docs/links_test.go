package docs

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	link       = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()\s]*\))?)\)`)
	heading    = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	explicit   = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
	markup     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// slug returns the anchor that GitHub derives from a heading.
func slug(title string) string {
	title = markup.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// anchors lists what a link may name after its number sign.
func (d *document) anchors() map[string]bool {
	found := make(map[string]bool)
	for _, line := range d.prose {
		if m := heading.FindStringSubmatch(line); m != nil {
			s := slug(m[1])
			for n := 1; found[s]; n++ {
				s = fmt.Sprintf("%s-%d", slug(m[1]), n)
			}
			found[s] = true
		}
		for _, m := range explicit.FindAllStringSubmatch(line, -1) {
			found[m[1]] = true
		}
	}
	return found
}

// brokenLinks checks the relative links of d. exists reports whether a path below the root exists.
func (d *document) brokenLinks(anchors map[string]map[string]bool, exists func(string) bool) []string {
	var broken []string
	for i, line := range d.prose {
		for _, m := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, "``"), -1) {
			u, err := url.Parse(m[1])
			if err == nil && (u.Scheme != "" || u.Host != "") {
				continue
			}
			target := d.path
			if err == nil && u.Path != "" {
				target = path.Join(path.Dir(d.path), u.Path)
			}
			switch {
			case err != nil || !exists(target):
				broken = append(broken, fmt.Sprintf("%s:%d: %s: no such file", d.path, i+1, m[1]))
			case u.Fragment != "" && !anchors[target][u.Fragment]:
				broken = append(broken, fmt.Sprintf("%s:%d: %s: no such heading", d.path, i+1, m[1]))
			}
		}
	}
	return broken
}

func TestLinksAndAnchors(t *testing.T) {
	all := everyDocument(t)
	anchors := make(map[string]map[string]bool)
	for _, d := range all {
		anchors[d.path] = d.anchors()
	}
	for _, d := range all {
		require.Empty(t, d.brokenLinks(anchors, func(name string) bool {
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
			return err == nil
		}))
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	d := parse("docs/a.md", "# A title, `QP.Send`\n\n[x](b.md) [x](#a-title-qpsend) [x](#b) [x](https://c/d#e)\n`[x](c.md)`\n```\n[x](d.md)\n```\n## A title, QP.Send\n[x](#a-title-qpsend-1)\n")
	broken := d.brokenLinks(map[string]map[string]bool{"docs/a.md": d.anchors()}, func(name string) bool { return name == "docs/a.md" })
	require.Equal(t, []string{"docs/a.md:3: b.md: no such file", "docs/a.md:3: #b: no such heading"}, broken)
}

// TestIndexHasEveryPage: docs/README.md leads to each page of docs.
func TestIndexHasEveryPage(t *testing.T) {
	text := page(t, "docs/README.md")
	for _, d := range everyDocument(t) {
		if path.Dir(d.path) == "docs" && d.path != "docs/README.md" {
			require.Contains(t, text, "("+path.Base(d.path)+")")
		}
	}
}
