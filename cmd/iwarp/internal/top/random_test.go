package top

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/monitor"
)

// styling are the escape sequences that styles make.
var styling = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// checkScreen requires that a screen has its size, and nothing but printable characters and styles.
func checkScreen(t require.TestingT, m *model) {
	content := m.View().Content
	lines := strings.Split(styling.ReplaceAllString(content, ""), "\n")
	require.Len(t, lines, max(m.height, 1), content)
	for _, l := range lines {
		require.LessOrEqual(t, len(l), max(m.width, 0), "%q", l)
		require.NotRegexp(t, `[^ -~]`, l)
	}
}

// arbitrary fills a value with anything that may come as JSON.
func arbitrary(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(began.Add(time.Duration(rapid.Int64().Draw(t, "time")))))
			return
		}
		for _, field := range v.Fields() {
			arbitrary(t, field)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			arbitrary(t, v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 3).Draw(t, "len"), 3))
		for i := range v.Len() {
			arbitrary(t, v.Index(i))
		}
	case reflect.Array:
		v.Index(rapid.IntRange(0, v.Len()-1).Draw(t, "index")).SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "RTS", "\x1b[2J\x1b]0;x\x07", "\u009b31m", "raw TCP", "192.0.2.1:1"})).Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(rapid.OneOf(rapid.Uint64Range(0, 5), rapid.Uint64()).Draw(t, "uint") & (1<<v.Type().Bits() - 1))
	default:
		v.SetInt(rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64()).Draw(t, "int"))
	}
}

// TestAnythingFits: whatever the keys, the sizes and the states, each line fits, and nothing controls the terminal.
func TestAnythingFits(t *testing.T) {
	names := []string{
		"q", "?", "e", "p", "esc", "up", "down", "pgup", "pgdown", "space", "home", "end", "s", "S", "r", "/", "enter", "backspace", "ctrl+u", "ctrl+c", "1", ".",
	}
	rapid.Check(t, func(t *rapid.T) {
		c := scene{
			pid: 1, qps: rapid.IntRange(0, 30).Draw(t, "qps"),
			trouble: rapid.Bool().Draw(t, "trouble"), latency: rapid.Bool().Draw(t, "latency"), peers: rapid.Bool().Draw(t, "peers"),
		}
		m := newModel(&options{sort: "rate"}, c.state(1), nil)
		m.palette = newPalette(rapid.Bool().Draw(t, "colours"))
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				m.Update(tea.WindowSizeMsg{Width: rapid.IntRange(0, 200).Draw(t, "width"), Height: rapid.IntRange(0, 60).Draw(t, "height")})
			case 1:
				c.qps = rapid.IntRange(0, 30).Draw(t, "qps")
				m.Update(sample{state: c.state(step + 2)})
			case 2:
				s := new(monitor.State)
				arbitrary(t, reflect.ValueOf(s).Elem())
				m.Update(sample{state: s, at: s.Time})
			case 3:
				m.Update(sample{err: errors.New(rapid.String().Draw(t, "error"))})
			case 4:
				m.Update(tea.PasteMsg{Content: rapid.String().Draw(t, "paste")})
			default:
				m.Update(pressed(rapid.SampledFrom(names).Draw(t, "key")))
			}
			checkScreen(t, m)
		}
	})
}

// hostile sets each text below a value to one that would control a terminal.
func hostile(v reflect.Value) {
	const text = "\x1b[2J\x1b]0;owned\x07\r\n\x9b31m\u009b\u202etxt\x7f\x00"
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for _, field := range v.Fields() {
				hostile(field)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			hostile(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			hostile(v.Index(i))
		}
	case reflect.String:
		v.SetString(text)
	default:
	}
}

// TestTextsCannotCommandTheTerminal: on each page, and in what is printed.
func TestTextsCannotCommandTheTerminal(t *testing.T) {
	c := scene{pid: 1, qps: 3, trouble: true, latency: true, peers: true}
	before, now := c.state(1), c.state(2)
	hostile(reflect.ValueOf(before).Elem())
	hostile(reflect.ValueOf(now).Elem())
	m := newModel(&options{sort: "rate"}, before, nil)
	m.Update(sample{state: now})
	for _, name := range []string{"e", "esc", "enter", "esc"} {
		for _, width := range []int{20, 80, 300} {
			m.Update(tea.WindowSizeMsg{Width: width, Height: 50})
			checkScreen(t, m)
		}
		m.Update(pressed(name))
	}
	require.Contains(t, m.View().Content, "owned", "the text is shown, without what commands")
	m.Update(sample{err: errors.New("\x1b[2J")})
	checkScreen(t, m)

	var text, lines bytes.Buffer
	require.NoError(t, printText(&text, m))
	require.NotRegexp(t, `[^ -~\n]`, text.String())
	require.NoError(t, printJSON(&lines, m.view))
	require.NotRegexp(t, `[^ -~\n]`, lines.String())
	var back monitor.View
	require.NoError(t, json.Unmarshal(lines.Bytes(), &back))
	require.Contains(t, back.Rows[0].Remote, "\x1b[2J\x1b]0;owned\a\r\n", "JSON has all of it, escaped")
}

// TestCharactersOutsideOfTheFirstPlane are two escapes in JSON.
func TestCharactersOutsideOfTheFirstPlane(t *testing.T) {
	c := scene{pid: 1}
	s := c.state(1)
	s.Process.Program = "clef 𝄞"
	var out bytes.Buffer
	require.NoError(t, printJSON(&out, newModel(&options{}, s, nil).view))
	require.Contains(t, out.String(), `"clef \ud834\udd1e"`)
}

// TestColours: only errors and warnings have one, and without colours they are bold.
func TestColours(t *testing.T) {
	for s, look := range newPalette(true) {
		coloured := regexp.MustCompile(`\x1b\[([0-9]*;)*[349][0-7]m`).MatchString(look.Render("x"))
		require.Equal(t, s == warning || s == failed, coloured, styleNames[s])
	}
	for s, look := range newPalette(false) {
		require.NotRegexp(t, `[349][0-7]m`, look.Render("x"), styleNames[s])
		require.Contains(t, look.Render("x"), "\x1b[", styleNames[s])
	}
}
