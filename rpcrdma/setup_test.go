package rpcrdma

import (
	"context"
	"encoding/hex"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// answers accepts one connection of the host, in the background.
func (h *host) answers() <-chan error {
	result := make(chan error, 1)
	ctx := within(h.TB)
	go func() {
		cr, err := h.l.Accept(ctx)
		if err != nil {
			result <- err
			return
		}
		c, err := Accept(ctx, cr, &h.cfg)
		result <- err
		if err == nil {
			<-c.Done()
		}
	}()
	return result
}

// TestRPR_1_RequestOfLinux is answered by the Reply in the captures: its octets, except C if there is no CRC, and except
// the flag for Send with Invalidate, which that server did not set (RFC 8797 section 4.1).
func TestRPR_1_RequestOfLinux(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Config)
		request string // IRD, ORD and private data
		reply   string
	}{
		"as in the captures":   {func(*Config) {}, "00800000f6ab0e1801010303", "5002000c00000010f6ab0e1801010303"},
		"thresholds of 1024":   {func(*Config) {}, "00800000f6ab0e1801010000", "5002000c00000010f6ab0e1801010303"},
		"without CRC":          {func(c *Config) { c.QP.MPA.NoCRC = true }, "00800000f6ab0e1801010303", "1002000c00000010f6ab0e1801010303"},
		"an IRD of 3":          {func(*Config) {}, "00030000f6ab0e1801010303", "5002000c00000003f6ab0e1801010303"},
		"no such private data": {func(c *Config) { c.Inline = 65536 }, "00800000", "5002000c00000010f6ab0e1801013f3f"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := newHost(t, "pipe", Config{})
				c.change(&h.cfg)
				result := h.answers()
				conn, err := transport.Dial(t.Context(), "pipe", h.l.Addr().String(), transport.Options{})
				require.NoError(t, err)
				rest, err := hex.DecodeString(c.request)
				require.NoError(t, err)
				_, err = conn.Write(append(append([]byte("MPA ID Req Frame"), 0x10, 2, 0, byte(len(rest))), rest...))
				require.NoError(t, err)
				reply := make([]byte, 32)
				_, err = io.ReadFull(conn, reply)
				require.NoError(t, err)
				require.Equal(t, "MPA ID Rep Frame", string(reply[:16]))
				require.Equal(t, c.reply, hex.EncodeToString(reply[16:]))
				require.NoError(t, <-result)
				require.NoError(t, conn.Close())
			})
		})
	}
}

// TestRPR_1_Thresholds: the threshold of replies is the smaller of what this side sends and what the client takes.
func TestRPR_1_Thresholds(t *testing.T) {
	for _, c := range []struct {
		inline  int
		private []byte
		want    int
		takes   bool
	}{
		{0, linux, 4096, true},
		{65536, linux, 4096, true},
		{2048, linux, 2048, true},
		{0, wire.Private{Send: 65536, Receive: 65536}.Append(nil), 4096, false},
		{0, nil, 1024, false},
		{0, []byte("\xf6\xab\x0e\x18\x02\x01\x03\x03"), 1024, false},
	} {
		bubble(t, func(t *testing.T) {
			c1 := newHost(t, "pipe", Config{Inline: c.inline}).connect(c.private)
			require.Equal(t, c.want, c1.conn.threshold)
			require.Equal(t, c.takes, c1.conn.invalidates)
			peer := wire.ParsePrivate(c1.qp.PrivateData())
			require.Equal(t, c1.conn.cfg.Inline, peer.Receive)
			require.Equal(t, c1.conn.cfg.Inline, peer.Send)
			require.True(t, peer.Invalidate)
			c1.serves()
		})
	}
}

// TestRPR_3_Depths: the ORD is never 0, and a client that takes no Reads is rejected.
func TestRPR_3_Depths(t *testing.T) {
	for ird, want := range map[int]int{1: 1, 5: 5, 16: 16, 128: 16} {
		bubble(t, func(t *testing.T) {
			c := newHost(t, "pipe", Config{}).connect(linux, func(q *iwarp.QPConfig) { q.IRD = ird })
			require.Equal(t, want, c.conn.qp.ORD())
			require.Equal(t, want, c.conn.ord)
			require.Zero(t, c.conn.qp.IRD(), "the client cannot read")
		})
	}
	bubble(t, func(t *testing.T) { // with revision 1 a client does not state its IRD
		c := newHost(t, "pipe", Config{}).connect(linux, func(q *iwarp.QPConfig) { q.MPA = iwarp.MPAOptions{Revision: 1} })
		require.Equal(t, 1, c.conn.qp.ORD())
	})
	bubble(t, func(t *testing.T) {
		h := newHost(t, "pipe", Config{})
		result := h.answers()
		_, err := h.dial(linux, func(q *iwarp.QPConfig) { q.IRD = -1 })
		var reject *iwarp.RejectError
		require.ErrorAs(t, err, &reject)
		require.Equal(t, 1, reject.ORD)
		require.ErrorIs(t, <-result, errIRD)
	})
}

// TestRPR_3_AnORDAboveThatOfTheRNIC is as many as the RNIC allows, and no connection fails because of it.
func TestRPR_3_AnORDAboveThatOfTheRNIC(t *testing.T) {
	for _, ord := range []int{math.MaxInt, 1025} {
		bubble(t, func(t *testing.T) {
			c := newHost(t, "pipe", Config{QP: iwarp.QPConfig{ORD: ord}}).connect(linux)
			require.Equal(t, 1024, c.conn.cfg.QP.ORD)
			require.Equal(t, 128, c.conn.qp.ORD(), "the IRD of the client")
		})
	}
	rnic, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxORD: 8}})
	require.NoError(t, err)
	defer func() { require.NoError(t, rnic.Close()) }()
	s, err := newShared(&Config{RNIC: rnic})
	require.NoError(t, err)
	require.Equal(t, 8, s.cfg.QP.ORD)
}

// TestRPR_14_MaxCall is no more than the share of a call, in pieces of memory: a longer call would never get its memory.
func TestRPR_14_MaxCall(t *testing.T) {
	rnic := open(t)
	for _, c := range []struct {
		maxCall, maxBytes int
		fits              bool
	}{
		{8 << 20, 64 << 20, true},
		{8<<20 + 1, 64 << 20, false},
		{8 << 20, 64<<20 - 1, false},
		{7<<20 + 1, 58 << 20, false}, // the piece of memory has 7.5 MiB
		{7 << 20, 56 << 20, true},
		{math.MaxInt, 64 << 20, false},
		{math.MaxInt - 1<<20, 64 << 20, false},
		{math.MaxInt, math.MaxInt, false},
		{math.MaxInt / 16, math.MaxInt, true},
	} {
		_, err := newShared(&Config{RNIC: rnic, MaxCall: c.maxCall, MaxBytes: c.maxBytes})
		if c.fits {
			require.NoError(t, err, c)
			continue
		}
		require.ErrorContains(t, err, "too little for calls of", c)
	}
}

// TestRPR_1_Configuration: an impossible configuration is refused, and so is the connection.
func TestRPR_1_Configuration(t *testing.T) {
	rnic := open(t)
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	for what, cfg := range map[string]Config{
		"no RNIC":              {},
		"credits":              {RNIC: rnic, Credits: -1},
		"too many credits":     {RNIC: rnic, Credits: 1025},
		"a small Inline":       {RNIC: rnic, Inline: 512},
		"an odd Inline":        {RNIC: rnic, Inline: 4097},
		"a large Inline":       {RNIC: rnic, Inline: 128 << 10},
		"a call below Inline":  {RNIC: rnic, MaxCall: 4000},
		"less than eight":      {RNIC: rnic, MaxBytes: 8 << 20},
		"a PD":                 {RNIC: rnic, QP: iwarp.QPConfig{PD: pd}},
		"no ORD":               {RNIC: rnic, QP: iwarp.QPConfig{ORD: -1}},
		"private data":         {RNIC: rnic, QP: iwarp.QPConfig{PrivateData: []byte{1}}},
		"a Setup":              {RNIC: rnic, QP: iwarp.QPConfig{Setup: func(context.Context, *iwarp.QP) error { return nil }}},
		"a depth of the queue": {RNIC: rnic, QP: iwarp.QPConfig{RecvDepth: 3}},
		"an RTRSend":           {RNIC: rnic, QP: iwarp.QPConfig{MPA: iwarp.MPAOptions{RTR: iwarp.RTRSend}}},
	} {
		_, err := newShared(&cfg)
		require.Error(t, err, what)
		require.Contains(t, err.Error(), "rpcrdma: ", what)
	}
	_, err = newShared(nil)
	require.Error(t, err)
	s, err := newShared(&Config{RNIC: rnic, Inline: 65536, Credits: 1024})
	require.NoError(t, err)
	require.Equal(t, 1<<20+8<<10, s.cfg.MaxCall)

	h := newHost(t, "pipe", Config{Credits: -1})
	result := h.answers()
	_, err = h.dial(linux)
	require.ErrorIs(t, err, iwarp.ErrRejected)
	require.Error(t, <-result)
}

// TestLimitsOfTheRNIC fail a Dial, or an Accept, and everything is released.
func TestLimitsOfTheRNIC(t *testing.T) {
	other := open(t)
	for name, limits := range map[string]iwarp.Limits{
		"no PD": {MaxPD: 1}, "no CQ": {MaxCQ: 1}, "no MR": {MaxMR: 1}, "one MR": {MaxMR: 2},
	} {
		rnic, err := iwarp.Open(&iwarp.Config{Limits: limits})
		require.NoError(t, err)
		pd, err := rnic.AllocPD()
		require.NoError(t, err)
		cq, err := rnic.CreateCQ(1)
		require.NoError(t, err)
		mr, err := pd.RegisterMR(make([]byte, 1), stag.LocalWrite, nil)
		require.NoError(t, err)
		_, err = Dial(within(t), rnic, "tcp", "127.0.0.1:1", nil)
		require.ErrorIs(t, err, iwarp.ErrLimit, name)

		l, err := rnic.Listen(within(t), "pipe", "", nil)
		require.NoError(t, err)
		dialled := make(chan error, 1)
		go func() {
			_, err := Dial(within(t), other, "pipe", l.Addr().String(), nil)
			dialled <- err
		}()
		cr, err := l.Accept(within(t))
		require.NoError(t, err)
		_, err = Accept(within(t), cr, &Config{RNIC: rnic})
		require.ErrorIs(t, err, iwarp.ErrLimit, name)
		require.ErrorIs(t, <-dialled, iwarp.ErrRejected, name)
		require.NoError(t, l.Close())
		require.NoError(t, mr.Close())
		require.NoError(t, cq.Close())
		require.NoError(t, pd.Close())
		require.NoError(t, rnic.Close())
	}
}

// TestAnRTRSendIsNotTaken: it would be an empty message, which is no RPC.
func TestAnRTRSendIsNotTaken(t *testing.T) {
	h := newHost(t, "pipe", Config{})
	result := h.answers()
	pd, err := h.cfg.RNIC.AllocPD()
	require.NoError(t, err)
	_, err = h.cfg.RNIC.Dial(within(t), "pipe", h.l.Addr().String(), &iwarp.QPConfig{PD: pd, MPA: iwarp.MPAOptions{RTR: iwarp.RTRSend}})
	require.ErrorContains(t, err, "no matching RTR option")
	t.Log("the responder has sent its Reply before the initiator has found that:", <-result)
}
