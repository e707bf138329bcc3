package monitor

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rebinding"
)

const (
	// freshness is for how long all requests get the same State: however many there are, the RNICs are queried at most ten times
	// a second.
	freshness = 100 * time.Millisecond
	// forgetTime is when States that no client requests are dropped.
	forgetTime = 10 * time.Second
)

// A Handler serves the page and the State of RNICs. All methods may be called from any goroutine, at any time.
type Handler struct {
	mux http.ServeMux

	mu       sync.Mutex
	cards    []*card
	nextCard int
	names    names
	newest   *State
	encoded  []byte      // the newest, as JSON; nil: not requested yet
	page     pair        // what the page compares
	forget   *time.Timer // drops the States; nil: there are none
}

// NewHandler returns a Handler of RNICs. They may be closed while it is used.
func NewHandler(rnics ...*iwarp.RNIC) *Handler {
	h := &Handler{}
	for _, r := range rnics {
		h.Add(r)
	}
	h.mux.HandleFunc("GET /state.json", h.serveState)
	h.mux.HandleFunc("GET /page.json", h.servePage)
	h.mux.HandleFunc("GET /{file...}", serveFile)
	return h
}

// Add adds an RNIC.
func (h *Handler) Add(r *iwarp.RNIC) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cards = append(h.cards, &card{id: h.nextCard, rnic: r})
	h.nextCard++
}

// Remove removes an RNIC, and what it has counted.
func (h *Handler) Remove(r *iwarp.RNIC) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cards = slices.DeleteFunc(h.cards, func(c *card) bool { return c.rnic == r })
}

// ServeHTTP serves the page at /, and a State at /state.json. It takes GET and HEAD. A request to a loopback
// address that names another host is refused: its sender was directed here by the name of another site (DNS rebinding).
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	if !rebinding.Refuse(w, r) {
		h.mux.ServeHTTP(w, r)
	}
}

// serveState serves the newest State, complete.
func (h *Handler) serveState(w http.ResponseWriter, _ *http.Request) {
	b, err := h.encodedState()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // an error means that the client has gone
}

func (h *Handler) encodedState() ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.state()
	if h.encoded == nil {
		var err error
		if h.encoded, err = json.Marshal(s); err != nil {
			return nil, err
		}
	}
	return h.encoded, nil
}

// state returns a fresh State. The caller holds the mutex.
func (h *Handler) state() *State {
	if h.forget == nil {
		h.forget = time.AfterFunc(forgetTime, h.drop)
	} else {
		h.forget.Reset(forgetTime)
	}
	if h.newest == nil || time.Since(started)-h.newest.Uptime >= freshness {
		h.newest, h.encoded = snapshot(h.cards, &h.names), nil
	}
	return h.newest
}

// drop drops the States, which no client has requested for forgetTime.
func (h *Handler) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.newest, h.encoded, h.page = nil, nil, pair{}
}

// A pair are the States that the page compares.
type pair struct{ before, after *State }

// shortest is the shortest time over which the rates of the page are taken.
const shortest = 900 * time.Millisecond

// pageStates returns the States to compare; before is nil if there is only one.
func (h *Handler) pageStates() pair {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.state()
	if p := &h.page; p.after == nil || s.Uptime-p.after.Uptime >= shortest {
		p.before, p.after = p.after, s
	}
	return h.page
}
