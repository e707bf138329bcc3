package matrix

import (
	"fmt"
	"io"
	"net"

	library "github.com/ishidawataru/sctp"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
)

// indication is the parameter of INIT and INIT ACK that indicates DDP (RFC 5043 section 5.1).
const indication = "\xc0\x06\x00\x08\x00\x00\x00\x01"

// PlainSCTP runs a peer that uses SCTP without the indication of DDP. It listens at addr, or
// connects to addr if dial is set, and writes to say how the association has ended.
func PlainSCTP(dial bool, addr string, say io.Writer) error {
	at, err := library.ResolveSCTPAddr("sctp", addr)
	if err != nil {
		return err
	}
	var c net.Conn
	if dial {
		c, err = library.DialSCTP("sctp", nil, at)
	} else {
		c, err = acceptOne(at, say)
	}
	if err == nil { // otherwise it has ended already
		_, err = c.Read(make([]byte, 100))
	}
	fmt.Fprintf(say, "ended: %v\n", err)
	return nil
}

func acceptOne(at *library.SCTPAddr, say io.Writer) (net.Conn, error) {
	l, err := library.ListenSCTP("sctp", at)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(say, "ready")
	return l.Accept()
}

// plainSCTPIsReset expects the association of a PlainSCTP to be aborted. Linux reports a reset if
// the association was accepted before the ABORT, and otherwise only the end of the association.
func (t *T) plainSCTPIsReset(p *process) {
	p.succeed()
	require.Regexp(t, "ended: (connection (refused|reset by peer)|EOF)", p.out.String())
	require.True(t, t.within(soon, func() bool { return t.capture.hasAbort(OurIP) }), "an ABORT")
	require.NotEmpty(t, t.capture.find(indication, 1), "ours gives the indication")
}

// hasAbort reports whether the end at this address has aborted an association of SCTP.
func (c *capture) hasAbort(ip string) (has bool) {
	const ethernet, header, common = 14, 20, 12
	const protocolSCTP, chunkAbort = 132, 6
	c.frames(func(frame []byte) {
		if len(frame) <= ethernet+header+common {
			return
		}
		packet, chunk := frame[ethernet:], frame[ethernet+header+common]
		has = has || packet[9] == protocolSCTP && net.IP(packet[12:16]).String() == ip && chunk == chunkAbort
	})
	return has
}

// askedWithoutIndication connects a PlainSCTP to our listener.
func (t *T) askedWithoutIndication() {
	require.NoError(t, commands("modprobe sctp"))
	e := t.openSCTP(0)
	l, err := e.rnic.Listen(t.Ctx, inKernel, hostPort(OurIP), nil)
	require.NoError(t, err)
	peer := t.self("plain-sctp", "dial", hostPort(OurIP))
	t.plainSCTPIsReset(peer)
	require.NoError(t, l.Close())
}

// answeredWithoutIndication connects to a PlainSCTP.
func (t *T) answeredWithoutIndication() {
	require.NoError(t, commands("modprobe sctp"))
	peer := t.other("plain-sctp", "listen", hostPort(PeerIP))
	e := t.openSCTP(0)
	_, err := e.rnic.Dial(t.Ctx, inKernel, hostPort(PeerIP), e.config(iwarp.QPConfig{}))
	require.ErrorIs(t, err, sctpkernel.ErrNotDDP, "Dial says why")
	t.plainSCTPIsReset(peer)
}
