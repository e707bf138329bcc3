package rmaperf

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// Over the control connection the client sends orders, each a line of JSON, and the server answers each
// with another. An empty line asks for what the server has used, which comes in the form of a peer.Usage.

// What an order asks for.
const (
	doOpen    = "open"    // a service
	doClose   = "close"   // a service
	doHold    = "hold"    // accesses to region heldRegion wait from now on
	doHeld    = "held"    // answered when one waits
	doRelease = "release" // they go on
	doCores   = "cores"   // on how many processors the server runs; 0: as many as it may
)

type order struct {
	Do      string   `json:"do"`
	Open    *service `json:"open,omitempty"`
	Service int      `json:"service,omitempty"` // number
	Cores   int      `json:"cores,omitempty"`
}

type reply struct {
	Error   string `json:"error,omitempty"`
	Service int    `json:"service,omitempty"`
	Addr    string `json:"addr,omitempty"`
}

// A remote is the client's end of the control connection.
type remote struct {
	c   net.Conn
	in  *bufio.Reader
	out *json.Encoder
	buf [peer.UsageLen]byte
}

func newRemote(addr string) (*remote, error) {
	c, err := peer.Dial(addr, "")
	if err != nil {
		return nil, err
	}
	return &remote{c: c, in: bufio.NewReader(c), out: json.NewEncoder(c)}, nil
}

// do gives an order and waits for the answer.
func (r *remote) do(o order) (a reply, err error) {
	if err := r.out.Encode(o); err != nil {
		return a, err
	}
	line, err := r.in.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("the server process: %w", err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, errors.New("server: " + a.Error)
	}
	return a, nil
}

// usage asks what the server has used.
func (r *remote) usage() (u peer.Usage, err error) {
	if _, err := r.c.Write(emptyLine); err != nil {
		return u, err
	}
	_, err = io.ReadFull(r.in, r.buf[:])
	return peer.UsageOf(&r.buf), err
}

var emptyLine = []byte{'\n'}
