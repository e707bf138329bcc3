package iwarp_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"time"

	"github.com/goiwarp/iwarp"
)

// selfSigned makes a certificate for a name, and the pool that trusts it.
func selfSigned(name string) (tls.Certificate, *x509.CertPool) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	pool := x509.NewCertPool()
	pool.AddCert(must(x509.ParseCertificate(der)))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// If the network is not trusted, the connection uses TLS, which encrypts it and authenticates
// the server. The CRC is not needed then.
func ExampleQPConfig_tls() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	certificate, trusted := selfSigned("storage.example")

	listener := must(rnic.Listen(ctx, "tcp", "127.0.0.1:0", &iwarp.ListenConfig{
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}))
	mpa := iwarp.MPAOptions{NoCRC: true} // if both sides say so
	go func() {
		request := must(listener.Accept(ctx))
		must(request.Accept(ctx, &iwarp.QPConfig{PD: pd, MPA: mpa, PrivateData: []byte("welcome")}))
	}()

	qp := must(rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{
		PD: pd, MPA: mpa,
		TLS: &tls.Config{RootCAs: trusted, ServerName: "storage.example"},
	}))
	check(qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{})) // of nothing: there and back
	fmt.Printf("%s\n", qp.PrivateData())
	// Output: welcome
}

// A trace of a connection is a pcap that Wireshark opens; here it goes into memory.
func ExampleQPConfig_trace() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	var trace bytes.Buffer
	client, _ := joined(rnic, pd, iwarp.QPConfig{Trace: &trace}, iwarp.QPConfig{})
	check(client.RDMARead(context.Background(), iwarp.SGE{}, iwarp.RemoteBuffer{}))
	check(client.Abort()) // from here on nothing is written to it

	fmt.Printf("%x\n", trace.Bytes()[:4])
	fmt.Println(bytes.Contains(trace.Bytes(), []byte("MPA ID Req Frame")))
	// Output:
	// 4d3cb2a1
	// true
}

// A handler that may be busy for long makes its peer wait without ending the connection.
// An event informs the operator.
func ExampleQPConfig_rnrWait() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	client, server := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{RNRWait: iwarp.RNRWaitForever})
	check(client.Send(ctx)) // nothing is posted for it yet

	event := <-rnic.Events() // after one second
	fmt.Println(event.Kind, event.QP == server)
	must(server.Recv(ctx, iwarp.SGE{}))
	fmt.Println(server.State())
	// Output:
	// no receive true
	// RTS
}
