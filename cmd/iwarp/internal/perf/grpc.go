package perf

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// The grpc baseline has one method, whose request is a length and whose answer has that
// many octets. No message is encoded: gRPC is measured, not protobuf.
const (
	grpcService = "iwarp.perf.Blocks"
	grpcGet     = "Get"
)

// octetsCodec uses a *[]byte as a message.
type octetsCodec struct{}

func (octetsCodec) Name() string { return "octets" }

func (octetsCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (octetsCodec) Unmarshal(data mem.BufferSlice, v any) error {
	p := v.(*[]byte)
	n := data.Len()
	if cap(*p) < n {
		*p = make([]byte, n)
	}
	*p = (*p)[:n]
	data.CopyTo(*p)
	return nil
}

// grpcWindow is large, so that flow control never holds a block back.
const grpcWindow = 8 << 20

func serveGRPC(host string, w workload) (service, error) {
	l, err := peer.Listen(host, w.CC)
	if err != nil {
		return nil, err
	}
	block := peer.SourceOf(w.Size)
	get := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var ask []byte
		if err := decode(&ask); err != nil {
			return nil, err
		}
		if len(ask) != 4 || binary.BigEndian.Uint32(ask) > uint32(len(block)) {
			return nil, fmt.Errorf("no such block")
		}
		answer := block[:binary.BigEndian.Uint32(ask)]
		return &answer, nil
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(octetsCodec{}),
		grpc.InitialWindowSize(grpcWindow), grpc.InitialConnWindowSize(grpcWindow))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: grpcService,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: grpcGet, Handler: get}},
	}, struct{}{})
	stop := func() error {
		s.Stop()
		return nil
	}
	return serveFetches(portOf(l), func() error { return s.Serve(l) }, stop, grpc.ErrServerStopped), nil
}

func dialGRPC(addr string, w workload) (driver, error) {
	var conns []*grpc.ClientConn
	d := newFetchDriver(w, func() error {
		return each(conns, (*grpc.ClientConn).Close)
	})
	ask := binary.BigEndian.AppendUint32(nil, uint32(w.Size))
	for range w.Conns {
		c, err := grpc.NewClient("passthrough:///"+addr,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return peer.Dial(addr, w.CC) }),
			grpc.WithInitialWindowSize(grpcWindow), grpc.WithInitialConnWindowSize(grpcWindow),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(octetsCodec{}), grpc.MaxCallRecvMsgSize(maxSize)))
		if err != nil {
			_ = d.close() // the first error counts
			return nil, err
		}
		conns = append(conns, c)
		d.connection(func(ctx context.Context, dst []byte) error {
			got := dst[:0]
			if err := c.Invoke(ctx, "/"+grpcService+"/"+grpcGet, &ask, &got); err != nil {
				return err
			}
			if len(got) != len(dst) {
				return fmt.Errorf("grpc: %d octets, want %d", len(got), len(dst))
			}
			return nil
		})
	}
	return d, nil
}
