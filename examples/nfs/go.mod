module github.com/goiwarp/iwarp/examples/nfs

go 1.26.0

require (
	github.com/go-git/go-billy/v5 v5.6.0
	github.com/goiwarp/iwarp v0.0.0
	github.com/stretchr/testify v1.12.1
	github.com/willscott/go-nfs v0.0.4
	github.com/willscott/go-nfs-client v0.0.0-20240104095149-b44639837b00
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/ishidawataru/sctp v0.0.0-20251114114122-19ddcbc6aae2 // indirect
	github.com/pion/logging v0.2.4 // indirect
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pion/sctp v1.11.3 // indirect
	github.com/pion/transport/v5 v5.0.1 // indirect
	github.com/rasky/go-xdr v0.0.0-20170124162913-1a41d1a06c93 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/goiwarp/iwarp => ../..
