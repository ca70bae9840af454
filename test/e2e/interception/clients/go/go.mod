module token-sidecar/test/e2e/interception

go 1.24
