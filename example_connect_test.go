package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
)

// An RNIC of a service: it logs, and takes no more than its share.
func ExampleOpen() {
	rnic := must(iwarp.Open(&iwarp.Config{
		Logger:      slog.Default(),
		Limits:      iwarp.Limits{MaxQP: 1000, MaxHalfOpen: 50},
		PeerTimeout: 5 * time.Second,
	}))
	defer rnic.Close()
	limits := rnic.Limits()
	fmt.Println(limits.MaxQP, "QPs,", limits.MaxInline, "octets inline")
	// Output: 1000 QPs, 1024 octets inline
}

// An initiator sends private data with its request, and receives private data with the
// reply.
func ExampleRNIC_Dial() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	listener := must(rnic.Listen(context.Background(), "tcp", "127.0.0.1:0", nil))
	go func() {
		request := must(listener.Accept(context.Background()))
		must(request.Accept(context.Background(), &iwarp.QPConfig{PD: pd, IRD: 4, PrivateData: []byte("welcome")}))
	}()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel() // it bounds the set-up and not the connection
	qp := must(rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{
		PD:          pd,
		ORD:         16, // RDMA Reads that we should like to have outstanding
		PrivateData: []byte("Ada"),
	}))
	fmt.Printf("%s; %v; %d Reads at once\n", qp.PrivateData(), qp.State(), qp.ORD())
	check(qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{})) // of nothing: there and back
	// Output: welcome; RTS; 4 Reads at once
}

// A responder serves until its listener is closed.
func ExampleRNIC_Listen() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())

	listener := must(rnic.Listen(ctx, "tcp", "127.0.0.1:0", &iwarp.ListenConfig{MaxHalfOpen: 10}))
	served := make(chan int)
	go func() {
		for n := 0; ; n++ {
			request, err := listener.Accept(ctx)
			if errors.Is(err, net.ErrClosed) {
				served <- n
				return
			}
			must(request.Accept(ctx, &iwarp.QPConfig{PD: pd})) // in a goroutine, if it may take long
		}
	}()

	for range 2 {
		must(rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{PD: pd}))
	}
	check(listener.Close())
	fmt.Println(<-served, "connections")
	// Output: 2 connections
}

// An existing connection, here one in memory, becomes a queue pair.
func ExampleRNIC_Client() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	near, far := net.Pipe()
	go func() {
		request := must(rnic.Server(ctx, far, nil))
		must(request.Accept(ctx, &iwarp.QPConfig{PD: pd}))
	}()

	qp := must(rnic.Client(ctx, near, &iwarp.QPConfig{PD: pd}))
	check(qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{})) // there and back
	fmt.Println(qp.State())
	// Output: RTS
}

// The server of a protocol that begins with something else: the initiator says in a
// line which protocol it wants.
func ExampleRNIC_Server() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	connected := make(chan *iwarp.QP)
	go func() {
		c := must(net.Dial("tcp", listener.Addr().String()))
		must(c.Write([]byte("iwarp\n")))
		connected <- must(rnic.Client(ctx, c, &iwarp.QPConfig{PD: pd, PrivateData: []byte("Ada")}))
	}()

	c := must(listener.Accept())
	line := make([]byte, 6)
	must(c.Read(line)) // no buffered reader: it would take octets of MPA too
	fmt.Printf("%q\n", line)
	request := must(rnic.Server(ctx, c, nil))
	qp := must(request.Accept(ctx, &iwarp.QPConfig{PD: pd}))
	fmt.Printf("%s, %v and %v\n", qp.PrivateData(), qp.State(), (<-connected).State())
	// Output:
	// "iwarp\n"
	// Ada, RTS and RTS
}

// A server can examine the private data and the ORD of a request before it accepts it.
func ExampleListener_Accept() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	listener := must(rnic.Listen(ctx, "pipe", "", nil))
	connected := make(chan *iwarp.QP)
	go func() {
		config := iwarp.QPConfig{PD: pd, ORD: 64, PrivateData: []byte("Ada")}
		connected <- must(rnic.Dial(ctx, "pipe", listener.Addr().String(), &config))
	}()

	request := must(listener.Accept(ctx))
	fmt.Printf("%s; ORD %d\n", request.PrivateData(), request.ORD())
	must(request.Accept(ctx, &iwarp.QPConfig{PD: pd, IRD: min(request.ORD(), 32)}))
	fmt.Println("ORD", (<-connected).ORD())
	// Output:
	// Ada; ORD 64
	// ORD 32
}

// A responder posts its receives before it sends the Reply, so that the first message
// finds one.
func ExampleConnRequest_Accept() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	listener := must(rnic.Listen(ctx, "pipe", "", nil))
	go func() {
		qp := must(rnic.Dial(ctx, "pipe", listener.Addr().String(), &iwarp.QPConfig{PD: pd, PrivateData: []byte("Ada")}))
		check(qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}))
	}()

	request := must(listener.Accept(ctx))
	qp := must(request.Accept(ctx, &iwarp.QPConfig{
		PD:          pd,
		PrivateData: append([]byte("welcome, "), request.PrivateData()...),
		Setup: func(_ context.Context, qp *iwarp.QP) error {
			return qp.PostRecv(iwarp.RecvWR{ID: 1})
		},
	}))
	var wcs [1]iwarp.WC
	must(qp.RecvCQ().Wait(ctx, wcs[:]))
	fmt.Println(wcs[0].Op, wcs[0].ID, wcs[0].Status)
	// Output: Receive 1 success
}

// A responder refuses and gives a reason, which the initiator finds in the error.
func ExampleConnRequest_Reject() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	listener := must(rnic.Listen(ctx, "pipe", "", nil))
	answer := make(chan error)
	go func() {
		_, err := rnic.Dial(ctx, "pipe", listener.Addr().String(), &iwarp.QPConfig{PD: pd})
		answer <- err
	}()

	request := must(listener.Accept(ctx))
	if !bytes.HasPrefix(request.PrivateData(), []byte("token ")) {
		check(request.Reject([]byte("a token is needed")))
	}
	err := <-answer
	var rejected *iwarp.RejectError
	if errors.As(err, &rejected) {
		fmt.Printf("%v: %s\n", errors.Is(err, iwarp.ErrRejected), rejected.PrivateData)
	}
	// Output: true: a token is needed
}

// A responder that cannot work with so few outstanding RDMA Reads says how many it
// needs, and the initiator tries again.
func ExampleConnRequest_RejectDepths() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	listener := must(rnic.Listen(ctx, "pipe", "", nil))
	connected := make(chan *iwarp.QP)
	go func() {
		config := iwarp.QPConfig{PD: pd, IRD: 2}
		qp, err := rnic.Dial(ctx, "pipe", listener.Addr().String(), &config)
		var rejected *iwarp.RejectError
		if errors.As(err, &rejected) {
			config.IRD = rejected.ORD // what the responder wants to have outstanding here
			qp = must(rnic.Dial(ctx, "pipe", listener.Addr().String(), &config))
		}
		connected <- qp
	}()

	request := must(listener.Accept(ctx))
	for request.IRD() < 8 {
		check(request.RejectDepths(nil, -1, 8)) // an IRD of ours is not the matter
		request = must(listener.Accept(ctx))
	}
	must(request.Accept(ctx, &iwarp.QPConfig{PD: pd, ORD: 8}))
	fmt.Println("IRD", (<-connected).IRD())
	// Output: IRD 8
}

// Events inform an operator how connections have ended.
func ExampleRNIC_Events() {
	rnic := must(iwarp.Open(nil))
	pd := must(rnic.AllocPD())
	_, server := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{})
	check(server.Terminate())

	events, closed := rnic.Events(), make(chan bool)
	go func() {
		for event := range events { // until rnic.Close
			if event.QP == server {
				fmt.Printf("%v: %v\n", event.Kind, event.Terminate)
			}
		}
		close(closed)
	}()
	check(rnic.Close())
	<-closed
	// Output: terminated: iwarp: terminated: RDMAP local catastrophic (0/0/00): the application cannot continue
}

// Shutdown ends connections so that the last messages arrive: when it returns, the peer
// has received them.
func ExampleRNIC_Shutdown() {
	server, client := must(iwarp.Open(nil)), must(iwarp.Open(nil))
	defer server.Close()
	pd := must(server.AllocPD())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	listener := must(server.Listen(ctx, "tcp", "127.0.0.1:0", nil))
	taken := make(chan int)
	go func() {
		request := must(listener.Accept(ctx))
		qp := must(request.Accept(ctx, &iwarp.QPConfig{PD: pd}))
		n := 0
		for {
			if _, err := qp.Recv(ctx, iwarp.SGE{}); err != nil {
				break // the client has ended the connection
			}
			n++
		}
		taken <- n
	}()

	qp := must(client.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{PD: must(client.AllocPD())}))
	for range 50 {
		check(qp.Send(ctx))
	}
	check(client.Shutdown(ctx)) // Close would throw away what the network still has
	fmt.Println(<-taken, "messages taken")
	// Output: 50 messages taken
}

// Close ends everything, and returns when all goroutines of the RNIC have ended.
func ExampleRNIC_Close() {
	rnic := must(iwarp.Open(nil))
	pd := must(rnic.AllocPD())
	client, _ := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{})
	check(client.PostRecv(iwarp.RecvWR{ID: 1}))
	check(rnic.Close())

	var wcs [1]iwarp.WC
	fmt.Println(client.RecvCQ().Poll(wcs[:]), wcs[0].ID, wcs[0].Status, client.State())
	_, err := rnic.AllocPD()
	fmt.Println(errors.Is(err, net.ErrClosed))
	// Output:
	// 1 1 flushed Error
	// true
}
