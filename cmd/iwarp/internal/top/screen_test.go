package top

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/monitor"
)

// A session is a model with the scene that it shows.
type session struct {
	*model
	scene   scene
	seconds int
}

// TestScreens runs conversations with the model from text files: keys, and the resulting screen.
//
//	open [pid=1] [qps=4] [width=80] [height=24] [trouble] [latency] [peers]
//	sample [seconds=1] [qps=4] [pid=1]   another look
//	fail [seconds=1]                     a look without an answer, for a reason
//	key names...                         keys, as Bubble Tea calls them
//	type text...                         keys, one for each character
//	resize width=80 height=24
//	styles                               what has a style, and which
//	once, json                           what is printed in place of the screen
func TestScreens(t *testing.T) {
	datadriven.Walk(t, "testdata/screens", func(t *testing.T, path string) {
		var s session
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out bytes.Buffer
			switch d.Cmd {
			case "styles":
				return s.styles()
			case "once":
				require.NoError(t, printText(&out, s.model))
			case "json":
				var line bytes.Buffer
				require.NoError(t, printJSON(&line, s.view))
				require.NoError(t, json.Indent(&out, line.Bytes(), "", "  "))
				out.WriteByte('\n')
			default:
				s.do(t, d)
				return s.text()
			}
			return out.String()
		})
	})
}

func (s *session) do(t *testing.T, d *datadriven.TestData) {
	seconds := 1
	d.MaybeScanArgs(t, "seconds", &seconds)
	d.MaybeScanArgs(t, "qps", &s.scene.qps)
	d.MaybeScanArgs(t, "pid", &s.scene.pid)
	s.seconds += seconds
	switch d.Cmd {
	case "open":
		s.seconds = 60
		s.scene.trouble, s.scene.latency, s.scene.peers = d.HasArg("trouble"), d.HasArg("latency"), d.HasArg("peers")
		s.model = newModel(&options{interval: time.Second, sort: "rate"}, s.scene.state(s.seconds), nil)
		s.resize(t, d)
	case "sample":
		s.Update(sample{state: s.scene.state(s.seconds), at: began.Add(time.Duration(s.seconds) * time.Second)})
	case "fail":
		reason := "connection refused"
		if d.Input != "" {
			reason = d.Input
		}
		s.Update(sample{err: errors.New(reason), at: began.Add(time.Duration(s.seconds) * time.Second)})
	case "key":
		for _, a := range d.CmdArgs {
			s.Update(pressed(a.Key))
		}
	case "type":
		for _, r := range strings.Join(strings.Fields(d.Input), " ") {
			s.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	case "resize":
		s.resize(t, d)
	default:
		t.Fatalf("no command %q", d.Cmd)
	}
}

func (s *session) resize(t *testing.T, d *datadriven.TestData) {
	size := tea.WindowSizeMsg{Width: 80, Height: 24}
	d.MaybeScanArgs(t, "width", &size.Width)
	d.MaybeScanArgs(t, "height", &size.Height)
	s.Update(size)
}

// special are the keys without a character.
var special = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
	"home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace, "space": tea.KeySpace,
}

// pressed returns the message for a key.
func pressed(name string) tea.KeyPressMsg {
	if code, ok := special[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	if letter, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: rune(name[0]), Text: name}
}

// text returns what is on the screen.
func (s *session) text() string {
	var b strings.Builder
	for _, l := range s.screen() {
		fmt.Fprintln(&b, strings.TrimRight(l.render(nil, s.width), " "))
	}
	return b.String()
}

var styleNames = map[style]string{strong: "strong", faint: "faint", chosen: "chosen", warning: "warning", failed: "failed"}

// styles lists the parts that have a style with a meaning.
func (s *session) styles() string {
	var b strings.Builder
	for i, l := range s.screen() {
		for _, p := range l {
			if p.style == warning || p.style == failed || p.style == chosen {
				fmt.Fprintf(&b, "%d %s %q\n", i, styleNames[p.style], strings.TrimSpace(p.text))
			}
		}
	}
	return b.String()
}

// TestKeysThatEnd: what they return to Bubble Tea.
func TestKeysThatEnd(t *testing.T) {
	c := scene{pid: 1, qps: 1}
	m := newModel(&options{}, c.state(1), nil)
	for name, want := range map[string]tea.Msg{"q": tea.QuitMsg{}, "ctrl+c": tea.QuitMsg{}, "ctrl+z": tea.SuspendMsg{}} {
		_, cmd := m.Update(pressed(name))
		require.NotNil(t, cmd, name)
		require.Equal(t, want, cmd(), name)
		require.Equal(t, name == "ctrl+c", m.interrupted)
		m.interrupted = false
	}
	m.Update(pressed("/"))
	_, cmd := m.Update(pressed("q"))
	require.Nil(t, cmd, "it is a letter of the filter")
	_, cmd = m.Update(pressed("ctrl+c"))
	require.NotNil(t, cmd)
}

// TestLooks: a fetch follows an interval, and an interval a fetch, except in pauses, in which nothing is fetched.
func TestLooks(t *testing.T) {
	c := scene{pid: 1, qps: 1}
	looks := 0
	m := newModel(&options{interval: time.Nanosecond}, c.state(1), func() (*monitor.State, error) {
		looks++
		return c.state(1 + looks), nil
	})
	require.Equal(t, due{}, m.Init()())
	_, look := m.Update(due{})
	require.Zero(t, looks, "a look is not in Update")
	got := look()
	require.Equal(t, 1, looks)
	_, wait := m.Update(got)
	require.Equal(t, due{}, wait())
	require.True(t, m.hasRates())

	_, look = m.Update(due{})
	m.Update(pressed("p"))
	shown := m.view
	_, wait = m.Update(look())
	require.Same(t, shown, m.view, "what comes late does not move a page that stands still")
	require.Equal(t, due{}, wait())
	_, wait = m.Update(due{})
	require.Equal(t, due{}, wait())
	require.Equal(t, 2, looks)
	m.Update(pressed("p"))
	_, look = m.Update(due{})
	m.Update(look())
	require.Equal(t, 3, looks)
	require.Equal(t, 2*time.Second, m.view.Interval, "of the pause")
}
