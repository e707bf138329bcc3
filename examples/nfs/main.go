// Command nfs serves a directory by NFSv3 over RDMA, to Linux for example:
//
//	nfs -listen :20049 -mount :20048 -root DIR [-ro] [-nocrc] [-tcp :2049]
//	mount -t nfs -o vers=3,proto=rdma,port=20049,mountproto=tcp,mountport=20048,nolock SERVER:/ /mnt
//
// The clients need siw, or an iWARP network card. The NFS server is github.com/willscott/go-nfs; package rpcrdma
// carries its RPC. File handles stay valid across restarts of the server, even if files were renamed meanwhile, except on systems
// without file numbers (inodes). If a file system, such as FUSE, keeps neither the birth time of a file nor the generation of its number,
// a handle may come to name a later file with the same number.
//
// DIR must be a single file system. File systems mounted below it are listed, but a call about them or their contents fails: the handle
// is stale (NFS3ERR_STALE). The same holds for files of other btrfs subvolumes, and of overlays whose layers are on several file systems.
//
// Clients are not authenticated, and act with the rights of the server's process. They cannot reach anything outside the directory.
// go-nfs trusts the lengths in a call, and a false length makes it allocate up to 2 GiB: the server is for trusted clients only.
//
// A write is in the page cache when it is answered: it survives the end of the server, but not a crash of its host. There are no hard
// links, no locks (hence nolock), and no reply cache, so a REMOVE that is repeated after a lost connection may fail.
// On a full file system, go-nfs answers CREATE, MKDIR, SYMLINK and MKNOD as if they were not permitted. It neither reports nor sets the bits
// setuid, setgid and sticky, and the only file time that it reports is that of the last write.
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
