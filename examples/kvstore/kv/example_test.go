package kv_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp/examples/kvstore/kv"
)

// Two replicas and a client run in one process. The primary is lost, and the value is still available.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "kv-example-")
	check(err)
	defer os.RemoveAll(dir)

	cfg := kv.Config{
		Network: "pipe", Path: filepath.Join(dir, "backup"), Master: []byte("thirty-two octets, random ones !"),
		Tenants: []kv.Tenant{{Name: "alpha", Shape: kv.Shape{Buckets: 1024, Values: 1 << 20}}},
	}
	backup, err := kv.Open(ctx, &cfg)
	check(err)
	cfg.Path, cfg.Backup = filepath.Join(dir, "primary"), backup.Addr().String()
	primary, err := kv.Open(ctx, &cfg)
	check(err)
	<-primary.Served()

	key, err := kv.TenantKey(cfg.Master, "alpha")
	check(err)
	client, err := kv.Dial(ctx, &kv.ClientConfig{
		Network: "pipe", Primary: primary.Addr().String(), Backup: backup.Addr().String(), Tenant: "alpha", Key: key,
	})
	check(err)
	check(client.Put(ctx, []byte("greeting"), []byte("hello")))

	check(primary.Close())
	value, err := client.Get(ctx, []byte("greeting"))
	fmt.Printf("%s %v\n", value, err)
	_, err = client.Get(ctx, []byte("farewell"))
	fmt.Println(errors.Is(err, kv.ErrNotFound))
	err = client.Put(ctx, []byte("greeting"), []byte("hello again"))
	fmt.Println(errors.Is(err, kv.ErrUnavailable) || errors.Is(err, kv.ErrUncertain))

	check(client.Close())
	check(backup.Close())
	// Output:
	// hello <nil>
	// true
	// true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
