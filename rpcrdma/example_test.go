package rpcrdma_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma"
)

// listen returns a listener on the pipe within the process; a server would use "tcp" and ":20049".
func listen() (*iwarp.RNIC, *iwarp.Listener) {
	rnic, err := iwarp.Open(nil)
	if err != nil {
		panic(err)
	}
	l, err := rnic.Listen(context.Background(), "pipe", "", nil)
	if err != nil {
		panic(err)
	}
	return rnic, l
}

// An ONC RPC server that takes a net.Listener, such as that of go-nfs, serves RDMA with this Listener.
func ExampleNewListener() {
	rnic, l := listen()
	defer func() { _ = rnic.Close() }()
	listener := rpcrdma.NewListener(l, &rpcrdma.Config{RNIC: rnic})

	served := make(chan error)
	go func() { served <- serve(listener) }()
	if err := listener.Shutdown(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(errors.Is(<-served, net.ErrClosed))
	// Output: true
}

// serve stands for an ONC RPC server.
func serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		_ = c.Close()
	}
}

// A client makes its RPC calls itself; here the server answers with what it has received.
func ExampleClient_Do() {
	rnic, l := listen()
	defer func() { _ = rnic.Close() }()
	go func() {
		cr, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		server, err := rpcrdma.Accept(context.Background(), cr, &rpcrdma.Config{RNIC: rnic})
		if err != nil {
			return
		}
		call, err := server.ReadCall(context.Background())
		if err != nil {
			return
		}
		accepted := []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		_ = call.Reply(context.Background(), call.Message()[:4], accepted, call.Message()[40:])
	}()

	client, err := rpcrdma.Dial(context.Background(), rnic, "pipe", l.Addr().String(), nil)
	if err != nil {
		panic(err)
	}
	var head []byte // XID, CALL, RPC version 2, program, its version, procedure, and twice AUTH_NONE
	for _, word := range []uint32{1, 0, 2, 0x20000001, 1, 7, 0, 0, 0, 0} {
		head = binary.BigEndian.AppendUint32(head, word)
	}
	data := make([]byte, 100_000) // too long for one message: the server reads it by RDMA
	copy(data, "hello")
	head = binary.BigEndian.AppendUint32(head, uint32(len(data)))
	reply, err := client.Do(context.Background(), &rpcrdma.Request{Head: head, Data: data, MaxReply: 200_000})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s, %d octets\n", reply.Message[24+4:24+9], len(reply.Message))
	// Output: hello, 100028 octets
}

// A program that does not need a stream takes whole calls, and may answer them in any order.
func ExampleAccept() {
	rnic, l := listen()
	defer func() { _ = rnic.Close() }()
	handle := func(cr *iwarp.ConnRequest) {
		c, err := rpcrdma.Accept(context.Background(), cr, &rpcrdma.Config{RNIC: rnic})
		if err != nil {
			return
		}
		for {
			call, err := c.ReadCall(context.Background())
			if err != nil {
				return
			}
			go func() {
				xid := call.Message()[:4]
				_ = call.Reply(context.Background(), xid, []byte("the rest of the RPC reply"))
			}()
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a server would go on
	fmt.Println(errors.Is(l.Serve(ctx, handle), context.Canceled))
	// Output: true
}
