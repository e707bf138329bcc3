package exporter

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rnictest"
	"github.com/goiwarp/iwarp/stag"
)

// patience is how long the page may take to show something: the browser starts meanwhile, and the page polls once a second.
const patience = 30 * time.Second

// A browser is a tab of Chromium, and what the page has written to its console.
type browser struct {
	*testing.T
	ctx context.Context

	mu      sync.Mutex
	console []string
}

// openBrowser starts Chromium, or skips the test.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil && path == "" {
			path = p
		}
	}
	if path == "" {
		require.NotEqual(t, "1", os.Getenv("IWARP_REQUIRE_TOOLS"), "IWARP_REQUIRE_TOOLS=1 promises chromium")
		t.Skip("chromium is not installed")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(path), chromedp.Env("TMPDIR="+t.TempDir()))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(stop)
	b := &browser{T: t, ctx: ctx}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return // the browser has ended
			}
			b.mu.Lock()
			b.console = append(b.console, m.String())
			b.mu.Unlock()
		}
	}()
	return b
}

// written returns what the page has written to the console since the last call.
func (b *browser) written() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.console
	b.console = nil
	return all
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	require.NoError(b, chromedp.Do(b.ctx, actions...))
}

// value returns the value of an expression in the page.
func value[T any](b *browser, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b, err, expression)
	return v
}

// becomes waits until an expression in the page is true.
func (b *browser) becomes(expression string) {
	b.Helper()
	var last bool
	for end := time.Now().Add(patience); !last && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		last = value[bool](b, expression)
	}
	require.True(b, last, "%s; the page:\n%s", expression, value[string](b, "document.body.innerText.slice(0, 2000)"))
}

// cells returns the texts of a column of the table.
func (b *browser) cells(column string) []string {
	b.Helper()
	return value[[]string](b, `[...document.querySelectorAll('#connections td.`+column+`')].map(td => td.textContent)`)
}

// A fabric is the two ends of the connections that the page shows.
type fabric struct {
	t              *testing.T
	client, server *iwarp.RNIC
	cpd, spd       *iwarp.PD
	l              *iwarp.Listener
	accepted       chan error
}

func newFabric(t *testing.T) *fabric {
	t.Helper()
	f := &fabric{t: t, accepted: make(chan error)}
	f.client, f.cpd = rnictest.Open(t, &iwarp.Config{Latency: true})
	f.server, f.spd = rnictest.Open(t, &iwarp.Config{Latency: true})
	var err error
	f.l, err = f.server.Listen(t.Context(), "pipe", "", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.l.Close()) })
	return f
}

// connect connects a client.
func (f *fabric) connect() *iwarp.QP {
	f.t.Helper()
	go func() {
		cr, err := f.l.Accept(f.t.Context())
		if err == nil {
			_, err = cr.Accept(f.t.Context(), &iwarp.QPConfig{PD: f.spd})
		}
		f.accepted <- err
	}()
	qp, err := f.client.Dial(f.t.Context(), "pipe", f.l.Addr().String(), &iwarp.QPConfig{PD: f.cpd})
	require.NoError(f.t, err)
	require.NoError(f.t, <-f.accepted)
	return qp
}

// writes writes to the server until stop is called.
func (f *fabric) writes(qp *iwarp.QP) (stop func()) {
	f.t.Helper()
	mr, err := f.spd.RegisterMR(make([]byte, 1<<16), stag.LocalWrite|stag.RemoteWrite, nil)
	require.NoError(f.t, err)
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		octets := make([]byte, 1<<16)
		for ctx.Err() == nil {
			if _, err := qp.Remote(mr.Advertise(0, 1<<16)).WriteAt(octets, 0); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return func() { cancel(); <-ended }
}

// A conn is a connection with a forged address.
type conn struct {
	net.Conn
	remote named
}

func (c *conn) RemoteAddr() net.Addr { return c.remote }

type named string

func (named) Network() string  { return "tcp" }
func (n named) String() string { return string(n) }

// hostile connects a client whose address is a text.
func (f *fabric) hostile(address string) {
	f.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f.t, err)
	defer l.Close()
	go func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			_, err = f.client.Client(f.t.Context(), c, &iwarp.QPConfig{PD: f.cpd})
		}
		f.accepted <- err
	}()
	c, err := l.Accept()
	require.NoError(f.t, err)
	cr, err := f.server.Server(f.t.Context(), &conn{c, named(address)}, nil)
	require.NoError(f.t, err)
	_, err = cr.Accept(f.t.Context(), &iwarp.QPConfig{PD: f.spd})
	require.NoError(f.t, err)
	require.NoError(f.t, <-f.accepted)
}

// hostileText would be a script, an image that calls one, and the end of a table.
const hostileText = `<script>document.title='owned'</script><img src=x onerror="document.title='owned'"></td></table>`

// TestPageInABrowser shows rates, errors, unchanged texts of peers, another order, the matching ones of a thousand connections,
// that the process has ended, and that another one has started. The console only shows that the process does not answer.
func TestPageInABrowser(t *testing.T) {
	b := openBrowser(t)
	f := newFabric(t)
	s := NewSet()
	s.Add(f.server)
	e, err := s.Serve(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)

	busy := f.connect()
	stop := f.writes(busy)
	b.do(chromedp.Navigate(e.URL()))
	b.becomes(`document.querySelectorAll('#connections tbody tr').length === 1`)
	b.becomes(`/^[1-9].* [kM]B\/s$/.test(document.querySelector('td.received').textContent)`)
	b.becomes(`!document.getElementById('plot').hidden && document.getElementById('received').points.length > 1`)
	require.Equal(t, []string{busy.LocalAddr().String()}, b.cells("remote"))
	require.Contains(t, value[string](b, `document.getElementById('about').textContent`), "process "+strconv.Itoa(os.Getpid()))
	require.Equal(t, "none", value[string](b, `document.getElementById('noErrors').innerText`))
	require.True(t, value[bool](b, `document.getElementById('errors').hidden && document.getElementById('gone').hidden`))
	stop()
	b.becomes(`document.querySelector('td.received').textContent === '0'`)

	f.hostile(hostileText)
	b.becomes(`document.querySelectorAll('#connections tbody tr').length === 2`)
	require.Contains(t, b.cells("remote"), hostileText)
	require.NotEqual(t, "owned", value[string](b, `document.title`))
	require.Zero(t, value[int](b, `document.querySelectorAll('img').length`))

	b.tableOfMany(f)
	b.errorsOf(f)
	require.Empty(t, b.written(), "the console")
	b.goneAndBack(s, e)
	require.NoError(t, busy.Close())
}

// tableOfMany checks a table with no more rows than people read, sorted by a click, and filtered.
func (b *browser) tableOfMany(f *fabric) {
	b.Helper()
	for range 998 {
		f.connect()
	}
	b.becomes(`document.getElementById('summary').textContent === '200 of 1,000 connections, the busiest first'`)
	require.Equal(b, 200, value[int](b, `document.querySelectorAll('#connections tbody tr').length`))

	b.do(chromedp.Click(`#connections th.path button`))
	b.becomes(`document.querySelector('#connections th.path').ariaSort === 'ascending'`)
	require.Contains(b, b.cells("path")[0], "net.Conn")
	b.do(chromedp.Click(`#connections th.path button`))
	b.becomes(`document.querySelector('#connections th.path').ariaSort === 'descending'`)
	require.Equal(b, "pipe", b.cells("path")[0])
	require.Equal(b, "#sort=path&reverse=", value[string](b, `location.hash`))

	b.do(chromedp.SendKeys(`#filter`, "ONERROR net.conn"))
	b.becomes(`document.getElementById('summary').textContent === '1 that match, of 1,000 connections'`)
	require.Equal(b, []string{hostileText}, b.cells("remote"))
	b.do(chromedp.Navigate("about:blank"), chromedp.NavigateBack())
	b.becomes(`document.getElementById('summary').textContent === '1 that match, of 1,000 connections'`)
	require.Equal(b, "ONERROR net.conn", value[string](b, `document.getElementById('filter').value`), "it is in the address")
	b.do(chromedp.Clear(`#filter`), chromedp.SendKeys(`#filter`, "nothing"))
	b.becomes(`document.querySelectorAll('#connections tbody tr').length === 0`)
}

// errorsOf checks that a Terminate is shown with its text.
func (b *browser) errorsOf(f *fabric) {
	b.Helper()
	qp := f.connect()
	_, err := qp.Remote(iwarp.RemoteBuffer{STag: 1 << 20, Len: 8}).WriteAt(make([]byte, 8), 0)
	if err == nil {
		<-qp.Done() // the peer has refused what was sent
	}
	b.becomes(`!document.getElementById('errors').hidden && document.getElementById('noErrors').hidden`)
	require.Contains(b, value[string](b, `document.getElementById('errors').innerText`), "Terminate sent: DDP tagged buffer: invalid STag (1/1/00)")
}

// goneAndBack checks that the page says that the process does not answer, keeps its contents, and goes on when a process answers.
func (b *browser) goneAndBack(s *Set, e *Server) {
	b.Helper()
	require.NoError(b, e.Close())
	b.becomes(`!document.getElementById('gone').hidden && document.body.classList.contains('stale')`)
	require.Contains(b, value[string](b, `document.getElementById('gone').textContent`), "The process does not answer")
	require.Equal(b, "1,000", value[string](b, `document.querySelectorAll('#tiles b')[2].textContent`))

	e, err := s.Serve(b.Context(), strings.Trim(strings.TrimPrefix(e.URL(), "http://"), "/"))
	require.NoError(b, err)
	b.becomes(`document.getElementById('gone').hidden && !document.body.classList.contains('stale')`)
	require.NoError(b, e.Close())
	for _, line := range b.written() {
		require.Contains(b, line, "net::ERR_", "it does not answer, and nothing else")
	}
}
