package measure

import (
	"fmt"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Text holds the words of one file, in lower case.
type Text struct {
	Path string
	// Names are the identifiers, each once, and the name of the file, in words: sendQueue is "send queue".
	Names []Phrase
	// Prose is each group of comments, each string and each paragraph, on one line. Identifiers in
	// it that consist of several words are in Names, too.
	Prose []Phrase

	seen map[string]bool // identifiers
}

// A Phrase is a piece of text, and the line of the file on which it begins.
type Phrase struct {
	Line     int
	Text     string
	exported bool // it is an exported identifier
}

// GoText extracts the words of a Go file.
func GoText(name string, src []byte) *Text {
	t := newText(name)
	f := token.NewFileSet().AddFile(name, -1, len(src))
	var s scanner.Scanner
	s.Init(f, src, nil, scanner.ScanComments)
	var group []string // of comments in lines that follow one another
	first, last := 0, -1
	flush := func() {
		t.prose(first, strings.Join(group, " "))
		group = nil
	}
	for {
		pos, tok, lit := s.Scan()
		line := f.Line(pos)
		if tok != token.COMMENT {
			flush()
		}
		switch tok {
		case token.EOF:
			return t
		case token.COMMENT:
			if line > last+1 {
				flush()
				first = line
			}
			last = line + strings.Count(lit, "\n")
			group = append(group, strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(lit, "//"), "/*"), "*/"))
		case token.IDENT:
			t.name(line, lit)
		case token.STRING:
			if v, err := strconv.Unquote(lit); err == nil {
				t.prose(line, v)
			}
		default:
		}
	}
}

// MarkdownText extracts the words of a Markdown file.
func MarkdownText(name string, src []byte) *Text {
	t := newText(name)
	line := 1
	for p := range strings.SplitSeq(string(src), "\n\n") {
		t.prose(line, p)
		line += strings.Count(p, "\n") + 2
	}
	return t
}

func newText(name string) *Text {
	t := &Text{Path: name, seen: make(map[string]bool)}
	t.name(1, path.Base(name))
	return t
}

func (t *Text) name(line int, id string) {
	if !t.seen[id] {
		t.seen[id] = true
		t.Names = append(t.Names, Phrase{line, strings.ToLower(Words(id)), token.IsExported(id)})
	}
}

// compound is an identifier of several words in prose.
var compound = regexp.MustCompile(`\b\w*[a-z0-9][A-Z]\w*\b`)

func (t *Text) prose(line int, s string) {
	s = strings.Join(strings.Fields(s), " ")
	if s == "" {
		return
	}
	t.Prose = append(t.Prose, Phrase{Line: line, Text: strings.ToLower(s)})
	for _, id := range compound.FindAllString(s, -1) {
		t.name(line, id)
	}
}

// Words splits an identifier into its words: "QPHasNo_room" is "QP Has No room".
func Words(id string) string {
	var b strings.Builder
	upper := func(i int) bool { return i < len(id) && 'A' <= id[i] && id[i] <= 'Z' }
	lower := func(i int) bool { return i < len(id) && 'a' <= id[i] && id[i] <= 'z' }
	for i := range len(id) {
		// A word begins with a capital, an abbreviation ends before the last of its capitals.
		if i > 0 && upper(i) && (!upper(i-1) || lower(i+1)) {
			b.WriteByte(' ')
		}
		if strings.IndexByte("_-.", id[i]) >= 0 {
			b.WriteByte(' ')
		} else {
			b.WriteByte(id[i])
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// A Word is a pattern that is searched for.
type Word struct {
	scope   string
	pattern *regexp.Regexp // matches at the beginning of a word
	prefix  string         // with which all matches begin, to find them quickly
	except  *regexp.Regexp // nil: nothing
}

// ParseWord reads a pattern, which is a scope and a regular expression for whole words in lower case:
//
//	names     buffer \w+            in identifiers and names of files, word by word
//	exported  buffer                as a whole exported identifier
//	prose     a buffer of           in comments, strings and documents
//	all       buffers?              in names and in prose
//	all       buffer !! a buffer    but not where it is part of what follows
func ParseWord(s string) (*Word, error) {
	scope, pattern, _ := strings.Cut(s, " ")
	if !slices.Contains([]string{"names", "exported", "prose", "all"}, scope) {
		return nil, fmt.Errorf("%q is no scope", scope)
	}
	pattern, except, ok := strings.Cut(pattern, " !! ")
	w := &Word{scope: scope}
	var err error
	if w.pattern, err = regexp.Compile(`^(?:` + pattern + `)\b`); err != nil {
		return nil, err
	}
	w.prefix, _ = regexp.MustCompile(`(?:` + pattern + `)`).LiteralPrefix()
	if ok {
		w.except, err = regexp.Compile(`\b(?:` + except + `)\b`)
	}
	return w, err
}

// Find returns the places at which w occurs in t, with some of the text around.
func (w *Word) Find(t *Text) []Phrase {
	var found []Phrase
	if w.scope != "prose" {
		found = w.find(found, t.Names)
	}
	if w.scope == "prose" || w.scope == "all" {
		found = w.find(found, t.Prose)
	}
	return found
}

func (w *Word) find(found, in []Phrase) []Phrase {
	const around = 40
	for _, p := range in {
		matches := w.matches(p)
		if len(matches) > 0 && w.except != nil {
			p.Text = w.except.ReplaceAllString(p.Text, "…")
			matches = w.matches(p)
		}
		for _, m := range matches {
			found = append(found, Phrase{Line: p.Line, Text: p.Text[max(0, m[0]-around):min(len(p.Text), m[1]+around)]})
		}
	}
	return found
}

// matches finds the pattern where a word begins.
func (w *Word) matches(p Phrase) [][2]int {
	var found [][2]int
	for i := 0; i < len(p.Text); {
		at := strings.Index(p.Text[i:], w.prefix)
		if at < 0 {
			break
		}
		i += at
		end := w.match(p, i)
		if end > 0 {
			found = append(found, [2]int{i, end})
		}
		i = max(i+1, end)
	}
	return found
}

// longest is more than the length of any match. The time of a search rises with what could match.
const longest = 256

// match tells where the match ends that begins at i, or 0.
func (w *Word) match(p Phrase, i int) int {
	if i > 0 && wordChar(p.Text[i-1]) || !wordChar(p.Text[i]) {
		return 0
	}
	m := w.pattern.FindStringIndex(p.Text[i:min(len(p.Text), i+longest)])
	if m == nil || w.scope == "exported" && (!p.exported || m[1] < len(p.Text)) {
		return 0
	}
	return i + m[1]
}

func wordChar(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z'
}

// Texts reads the words of all Go files and documents of a module, but for CONFORMANCE.md, which is
// generated.
func Texts(root string, files []*File) ([]*Text, error) {
	var texts []*Text
	for _, f := range files {
		texts = append(texts, GoText(f.Path, f.Src))
	}
	err := Walk(root, ".md", func(name string, src []byte) error {
		if name != "CONFORMANCE.md" {
			texts = append(texts, MarkdownText(name, src))
		}
		return nil
	})
	return texts, err
}
