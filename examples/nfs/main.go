// Command nfs serves a directory by NFSv3 over RDMA, to Linux for example:
//
//	nfs -listen :20049 -mount :20048 -root DIR [-ro] [-nocrc] [-tcp :2049]
//	mount -t nfs -o vers=3,proto=rdma,port=20049,mountproto=tcp,mountport=20048,nolock SERVER:/ /mnt
//
// The clients need siw, or an iWARP network card. The NFS server is github.com/willscott/go-nfs; package rpcrdma
// carries its RPC. File handles stay valid when the server is restarted, also if files were renamed meanwhile, except on systems whose
// files have no numbers. Where a file system keeps neither the time of birth of a file nor the generation of its number, such as FUSE, a
// handle may be that of a later file with the same number.
//
// DIR is one file system. What is mounted below it is listed, but a call about it, or about what is in it, fails: its handle is stale
// (NFS3ERR_STALE). So are those of files of other subvolumes of btrfs, and of overlays whose layers are not all on one file system.
//
// Clients are not authenticated, and act with the rights of the server's process. Nothing outside of the directory can be
// reached. go-nfs believes the lengths in a call, and one that lies makes it take up to 2 GiB: the server is for clients that are trusted.
//
// A write is in the page cache when it is answered: it survives the end of the server, but not that of its host. There are no hard
// links, no locks (hence nolock), and no cache of replies, so a REMOVE that is repeated after a connection was lost may fail.
// go-nfs answers CREATE, MKDIR and SYMLINK on a full file system as if they were not permitted, and so MKNOD. It neither tells nor sets the bits
// setuid, setgid and sticky, and the one time of a file that it tells is that of the last write.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	flag.CommandLine = flag.NewFlagSet("nfs", flag.ExitOnError) // "go run" gives the program another name
	var o options
	flag.StringVar(&o.listen, "listen", ":20049", "address for NFS over RDMA")
	flag.StringVar(&o.mount, "mount", ":20048", "address for MOUNT over TCP")
	flag.StringVar(&o.tcp, "tcp", "", "address for NFS over TCP; empty: none")
	flag.StringVar(&o.root, "root", "", "directory to serve")
	flag.BoolVar(&o.noCRC, "nocrc", false, "do without the CRCs of MPA, if the client agrees")
	flag.BoolVar(&o.readOnly, "ro", false, "clients may not change anything")
	flag.Parse()
	if o.root == "" || o.mount == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "nfs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	s, err := start(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("serving %s: NFS over RDMA on %v, MOUNT on %v\n", o.root, s.rdma.Addr(), s.streams[0].Addr())
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	s.stop()
	return err
}
