package iwarp_test

import (
	"context"

	"github.com/goiwarp/iwarp"
)

// pair connects two QPs of one process, with a PD for the memory of both, which a real
// program would not do.
func pair() (client, server *iwarp.QP, pd *iwarp.PD, done func()) {
	rnic := must(iwarp.Open(nil))
	pd = must(rnic.AllocPD())
	client, server = joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{})
	return client, server, pd, func() { check(rnic.Close()) }
}

// joined connects a client and a server within the process. What their configurations
// leave open is filled in.
func joined(rnic *iwarp.RNIC, pd *iwarp.PD, clientConfig, serverConfig iwarp.QPConfig) (client, server *iwarp.QP) {
	ctx := context.Background()
	clientConfig.PD, serverConfig.PD = pd, pd
	listener := must(rnic.Listen(ctx, "pipe", "", nil))
	defer listener.Close()
	accepted := make(chan *iwarp.QP)
	go func() {
		request := must(listener.Accept(ctx))
		accepted <- must(request.Accept(ctx, &serverConfig))
	}()
	client = must(rnic.Dial(ctx, "pipe", listener.Addr().String(), &clientConfig))
	return client, <-accepted
}
