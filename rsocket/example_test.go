package rsocket_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A server echoes what it reads, and a client ends its half and reads the rest. Either
// could be a program that uses librdmacm.
func Example() {
	ctx := context.Background()
	rnic, err := iwarp.Open(nil)
	check(err)
	defer func() { _ = rnic.Close() }()

	listener, err := rsocket.Listen(ctx, rnic, "tcp", "127.0.0.1:0", nil)
	check(err)
	defer func() { _ = listener.Close() }()
	go func() {
		conn, err := listener.Accept()
		check(err)
		_, err = io.Copy(conn, conn)
		check(err)
		check(conn.Close())
	}()

	conn, err := rsocket.Dial(ctx, rnic, "tcp", listener.Addr().String(), nil)
	check(err)
	_, err = io.WriteString(conn, "hello")
	check(err)
	check(conn.CloseWrite())
	answer, err := io.ReadAll(conn)
	fmt.Printf("%s, %v\n", answer, err)
	check(conn.Close())
	// Output: hello, <nil>
}

// HTTP: the listener is that of an http.Server, and Dialer that of an http.Transport.
func Example_http() {
	rnic, err := iwarp.Open(nil)
	check(err)
	defer func() { _ = rnic.Close() }()
	listener, err := rsocket.Listen(context.Background(), rnic, "tcp", "127.0.0.1:0", nil)
	check(err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		check(err)
		_, _ = fmt.Fprint(w, strings.ToUpper(string(body)))
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	transport := &http.Transport{DialContext: rsocket.Dialer(rnic, nil)}
	client := &http.Client{Transport: transport}
	for _, text := range []string{"hello", "again, on the same connection"} {
		response, err := client.Post("http://"+listener.Addr().String()+"/", "text/plain", strings.NewReader(text))
		check(err)
		body, err := io.ReadAll(response.Body)
		check(err)
		check(response.Body.Close())
		fmt.Println(response.StatusCode, string(body))
	}
	transport.CloseIdleConnections()
	check(server.Shutdown(context.Background()))
	fmt.Println(<-served)
	// Output:
	// 200 HELLO
	// 200 AGAIN, ON THE SAME CONNECTION
	// http: Server closed
}

// Sums is a service of net/rpc.
type Sums struct{}

// Add adds numbers.
func (Sums) Add(numbers []int, sum *int) error {
	for _, n := range numbers {
		*sum += n
	}
	return nil
}

// Package net/rpc takes any net.Conn and net.Listener.
func Example_rpc() {
	rnic, err := iwarp.Open(nil)
	check(err)
	defer func() { _ = rnic.Close() }()
	listener, err := rsocket.Listen(context.Background(), rnic, "tcp", "127.0.0.1:0", nil)
	check(err)
	defer func() { _ = listener.Close() }()
	server := rpc.NewServer()
	check(server.Register(Sums{}))
	go func() {
		conn, err := listener.Accept()
		check(err)
		server.ServeConn(conn)
	}()

	conn, err := rsocket.Dial(context.Background(), rnic, "tcp", listener.Addr().String(), nil)
	check(err)
	client := rpc.NewClient(conn)
	var sum int
	check(client.Call("Sums.Add", []int{1, 2, 39}, &sum))
	fmt.Println(sum)
	check(client.Close())
	// Output: 42
}

// A program with a listener of its own may look at a request before it accepts it.
func ExampleAccept() {
	ctx := context.Background()
	rnic, err := iwarp.Open(nil)
	check(err)
	defer func() { _ = rnic.Close() }()
	listener, err := rnic.Listen(ctx, "pipe", "", nil)
	check(err)
	defer func() { _ = listener.Close() }()
	go func() {
		request, err := listener.Accept(ctx)
		check(err)
		fmt.Println("private data:", len(request.PrivateData()))
		conn, err := rsocket.Accept(ctx, rnic, request, &rsocket.Config{Credits: 64})
		check(err)
		_, err = io.WriteString(conn, "welcome")
		check(err)
		check(conn.Close())
	}()

	var conn net.Conn
	conn, err = rsocket.Dialer(rnic, nil)(ctx, "pipe", listener.Addr().String())
	check(err)
	text, err := io.ReadAll(conn)
	check(err)
	fmt.Printf("%s\n", text)
	check(conn.Close())
	// Output:
	// private data: 40
	// welcome
}
