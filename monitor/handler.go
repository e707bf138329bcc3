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
	// freshness is for how long a State is given to all that ask: however many they are, the RNICs are asked ten times a second
	// at most.
	freshness = 100 * time.Millisecond
	// forgetTime is when States are dropped that no one asks for.
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
	encoded  []byte      // the newest, as JSON; nil: not asked for yet
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

// ServeHTTP serves the page at /, and a State at /state.json. It takes GET and HEAD. A request that has come to a loopback
// address and names another host is refused: its sender was led here by the name of another site (DNS rebinding).
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

// serveState serves the newest State, whole.
func (h *Handler) serveState(w http.ResponseWriter, _ *http.Request) {
	b, err := h.encodedState()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // the client has gone
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

// state is a State that is fresh. The caller has the mutex.
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

// drop drops what no one has asked for.
func (h *Handler) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.newest, h.encoded, h.page = nil, nil, pair{}
}

// A pair are the States that the page compares.
type pair struct{ before, after *State }

// shortest is how long the rates of the page are taken over, at least.
const shortest = 900 * time.Millisecond

// pageStates are the States to compare; before is nil if there is one only.
func (h *Handler) pageStates() pair {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.state()
	if p := &h.page; p.after == nil || s.Uptime-p.after.Uptime >= shortest {
		p.before, p.after = p.after, s
	}
	return h.page
}
