package rdma9p_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/hugelgupf/p9/p9"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/ninep/dirfs"
	"github.com/goiwarp/iwarp/examples/ninep/rdma9p"
)

// A directory that Linux can mount: mount -t 9p -o trans=rdma,port=5640 10.1.0.2 /mnt
func Example() {
	rnic, err := iwarp.Open(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := rnic.Listen(ctx, "tcp", ":5640", nil)
	if err != nil {
		log.Fatal(err)
	}
	server := rdma9p.DelayEnd(p9.NewServer(dirfs.Attacher("/srv")))
	err = rdma9p.Serve(ctx, l, server, &rdma9p.Config{ReadOnly: true, QP: iwarp.QPConfig{PD: pd}})
	fmt.Println(err)
}
