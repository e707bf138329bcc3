package dump_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/dump"
	"github.com/goiwarp/iwarp/stag"
)

// A tapped is a socket that records what it sends, as raw IPv4 packets of UDP.
type tapped struct {
	*net.UDPConn
	mu   *sync.Mutex
	file *bytes.Buffer
}

func (c tapped) WriteTo(p []byte, to net.Addr) (int, error) {
	c.record(p, to.(*net.UDPAddr).AddrPort())
	return c.UDPConn.WriteTo(p, to)
}

func (c tapped) WriteToUDPAddrPort(p []byte, to netip.AddrPort) (int, error) {
	c.record(p, to)
	return c.UDPConn.WriteToUDPAddrPort(p, to)
}

func (c tapped) WriteMsgUDPAddrPort(p, oob []byte, to netip.AddrPort) (n, oobn int, err error) {
	c.record(p, to)
	return c.UDPConn.WriteMsgUDPAddrPort(p, oob, to)
}

func (c tapped) record(p []byte, to netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.LocalAddr().(*net.UDPAddr).AddrPort()
	le, be := binary.LittleEndian, binary.BigEndian
	src, dst := from.Addr().Unmap().As4(), to.Addr().Unmap().As4()
	ip := be.AppendUint16(unhex("4500"), uint16(28+len(p)))
	ip = append(ip, 0, 0, 0, 0, 64, 17, 0, 0)
	ip = append(append(ip, src[:]...), dst[:]...)
	for _, v := range []uint16{from.Port(), to.Port(), uint16(8 + len(p)), 0} {
		ip = be.AppendUint16(ip, v)
	}
	ip = append(ip, p...)
	for _, v := range []uint32{1, 0, uint32(len(ip)), uint32(len(ip))} {
		c.file.Write(le.AppendUint32(nil, v))
	}
	c.file.Write(ip)
}

// TestSCTPOfTheLibrary decodes what a connection over SCTP sends.
func TestSCTPOfTheLibrary(t *testing.T) {
	var mu sync.Mutex
	file := bytes.NewBuffer(packets(true))
	ctx := t.Context()
	rnic, err := iwarp.Open(&iwarp.Config{ListenPacket: func(ctx context.Context, network, address string) (net.PacketConn, error) {
		c, err := new(net.ListenConfig).ListenPacket(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return tapped{c.(*net.UDPConn), &mu, file}, nil
	}})
	require.NoError(t, err)
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	config := func() *iwarp.QPConfig {
		cq, err := rnic.CreateCQ(16)
		require.NoError(t, err)
		return &iwarp.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4}
	}
	listener, err := rnic.Listen(ctx, "sctp+udp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	served := config()
	accepted := make(chan *iwarp.QP, 1)
	go func() {
		defer close(accepted)
		request, err := listener.Accept(ctx)
		if err != nil {
			return
		}
		if qp, err := request.Accept(ctx, served); err == nil {
			accepted <- qp
		}
	}()
	qp, err := rnic.Dial(ctx, "sctp+udp", listener.Addr().String(), config())
	require.NoError(t, err)
	server := <-accepted
	require.NotNil(t, server)
	mr, err := pd.RegisterMR(make([]byte, 4096), stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	require.NoError(t, err)
	require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{mr.Slice(0, 3000)}, Remote: mr.Advertise(0, 3000)}))
	var done [1]iwarp.WC
	_, err = qp.SendCQ().Wait(ctx, done[:])
	require.NoError(t, err)
	require.NoError(t, qp.Close())
	require.NoError(t, server.Close())
	require.NoError(t, listener.Close())
	require.NoError(t, rnic.Close())

	mu.Lock()
	defer mu.Unlock()
	got := strings.Join(lines(t, file.Bytes(), dump.Config{}), "\n")
	for _, want := range []string{"INIT with adaptation indication", "INIT ACK with adaptation", "Enhanced Initiate, IRD", "Enhanced Accept, IRD", "> RDMA Write STag ", "last, stream "} {
		require.Contains(t, got, want)
	}
	require.NotContains(t, got, "!")
}
