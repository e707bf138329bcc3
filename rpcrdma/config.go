package rpcrdma

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// A Config configures connections. Zero fields other than RNIC have defaults.
type Config struct {
	// RNIC is the RNIC of the listener. Each connection allocates a PD of its own from it.
	RNIC *iwarp.RNIC
	// Credits is how many calls a client may have without a reply: 32 by default, 1024 at most.
	Credits int
	// Inline is how many octets this side takes, and sends, in one message: 4096 by default, a multiple of 1024
	// up to 65,536. A client may want less.
	Inline int
	// MaxCall is how many octets a call has at most, with its chunks: 1 MiB and 8 KiB by default.
	MaxCall int
	// MaxBytes is how many octets of memory the calls and the replies that are longer than Inline may use, for all
	// connections of a Listener together: 64 MiB by default, and at least ten times MaxCall. A reply has at most an
	// eighth of it.
	MaxBytes int
	// Binding says which parts of replies may move by RDMA, and if it is an ArgumentBinding also which parts of calls; nil means NFSv3.
	Binding Binding
	// QP has further options of the QPs: ORD, Solicitor, RNRWait, StallWait, MPA, UserData and Trace. The others must
	// be zero. An ORD above Limits.MaxORD of the RNIC is lowered to it. MPA.RTR cannot contain RTRSend, which is an empty message
	// and no RPC: a client that offers nothing else is not accepted.
	QP iwarp.QPConfig
	// Refused, if not nil, is called for each connection request that a Listener did not turn into a connection, with the cause: for
	// example, the client takes no RDMA Reads, or RNIC is not the listener's, or has no room left. Accept returns nothing for it.
	// The goroutine of the request calls Refused. Peers that are not authenticated can cause calls, so bound what is logged.
	Refused func(remote net.Addr, cause error)
}

const (
	defaultCredits = 32
	defaultInline  = 4096
	defaultMaxCall = 1<<20 + 8<<10
	defaultMax     = 64 << 20
	defaultORD     = 16
	defaultRTR     = iwarp.RTRWrite | iwarp.RTRRead

	maxCredits = 1024
	maxInline  = 64 << 10

	spareReceives = 8 // for messages that are no calls, and take no credit
	maxShare      = 8 // one call, or one reply, has at most MaxBytes/maxShare
)

// withDefaults returns the configuration with all fields set.
func (c *Config) withDefaults() (Config, error) {
	if c == nil || c.RNIC == nil {
		return Config{}, errors.New("rpcrdma: Config.RNIC is nil")
	}
	d := *c
	d.Credits = cmp.Or(d.Credits, defaultCredits)
	d.Inline = cmp.Or(d.Inline, defaultInline)
	d.MaxCall = cmp.Or(d.MaxCall, max(defaultMaxCall, d.Inline))
	d.MaxBytes = cmp.Or(d.MaxBytes, defaultMax)
	d.QP.ORD = min(cmp.Or(d.QP.ORD, defaultORD), c.RNIC.Limits().MaxORD)
	d.QP.MPA.RTR = cmp.Or(d.QP.MPA.RTR, defaultRTR)
	if d.Binding == nil {
		d.Binding = NFSv3{}
	}
	return d, d.check()
}

func (c *Config) check() error {
	if err := checkSizes("Config", c.Credits, c.Inline); err != nil {
		return err
	}
	switch share := c.MaxBytes / maxShare; {
	case c.MaxCall < c.Inline:
		return fmt.Errorf("rpcrdma: Config.MaxCall is %d, and Config.Inline is %d", c.MaxCall, c.Inline)
	case share < c.MaxCall || share < sizeOf(c.MaxCall): // sizeOf of more than the share may overflow
		return fmt.Errorf("rpcrdma: Config.MaxBytes is %d, which is too little for calls of %d", c.MaxBytes, c.MaxCall)
	case c.QP.ORD < 1:
		return errors.New("rpcrdma: Config.QP.ORD is negative: calls with chunks need RDMA Reads")
	}
	return checkQP("Config", &c.QP, true)
}

// checkSizes checks what servers and clients configure alike.
func checkSizes(config string, credits, inline int) error {
	switch {
	case credits < 1 || credits > maxCredits:
		return fmt.Errorf("rpcrdma: %s.Credits is %d, which is not between 1 and %d", config, credits, maxCredits)
	case inline < wire.Unit || inline > maxInline || inline%wire.Unit != 0:
		return fmt.Errorf("rpcrdma: %s.Inline is %d, which is no multiple of 1024 up to %d", config, inline, maxInline)
	}
	return nil
}

// checkQP refuses options that this package sets itself, and options that are not for this side.
func checkQP(config string, q *iwarp.QPConfig, server bool) error {
	for _, o := range []struct {
		name string
		set  bool
	}{
		{"PD", q.PD != nil},
		{"SendCQ", q.SendCQ != nil},
		{"RecvCQ", q.RecvCQ != nil},
		{"SRQ", q.SRQ != nil},
		{"SendDepth", q.SendDepth != 0},
		{"RecvDepth", q.RecvDepth != 0},
		{"PrivateData", q.PrivateData != nil},
		{"Setup", q.Setup != nil},
		{"Commit", q.Commit != nil},
		{"IRD", server && q.IRD != 0},
		{"ORD", !server && q.ORD != 0},
		{"Solicitor", !server && q.Solicitor != nil},
		{"TLS", server && q.TLS != nil},
		{"Auth", server && q.Auth != nil},
		{"SetupTrace", server && q.SetupTrace != nil},
		{"MPA.RTR of RTRSend", q.MPA.RTR&iwarp.RTRSend != 0},
	} {
		if o.set {
			return fmt.Errorf("rpcrdma: %s.QP.%s is not for the user of the package", config, o.name)
		}
	}
	return nil
}

// receives returns how many receives are posted for messages of a client.
func (c *Config) receives() int { return c.Credits + spareReceives }

// maxReply returns how many octets a reply has at most, so that its memory does not exceed the share.
func (c *Config) maxReply() int {
	share := c.MaxBytes / maxShare
	return share &^ (stepOf(share) - 1)
}

// sendDepth returns the depth of the send queue: it has room for two replies with as many segments as a header can have, and for
// the RDMA Reads.
func (c *Config) sendDepth() int { return c.QP.ORD + 2*(c.Inline/16+1) }
