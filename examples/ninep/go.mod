module github.com/goiwarp/iwarp/examples/ninep

go 1.26.0

require (
	github.com/goiwarp/iwarp v0.0.0
	github.com/hugelgupf/p9 v0.3.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/ishidawataru/sctp v0.0.0-20251114114122-19ddcbc6aae2 // indirect
	github.com/pion/logging v0.2.4 // indirect
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pion/sctp v1.11.3 // indirect
	github.com/pion/transport/v5 v5.0.1 // indirect
	github.com/u-root/uio v0.0.0-20230305220412-3e8cd9d6bf63 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/goiwarp/iwarp => ../..
