module token-sidecar/test/e2e/slow-routes/server

go 1.24
