// Package echo holds the service's description, compiled from echo.proto when a program starts.
package echo

import (
	"context"
	_ "embed"
	"log"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoregistry"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	File    = "echo.proto"
	Service = "tokensidecar.e2e.Echo"
)

//go:embed echo.proto
var source string

// Reflection answers from the registry.
func init() {
	resolver := &protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{File: source})}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(resolver)}
	files, err := compiler.Compile(context.Background(), File)
	if err != nil {
		log.Fatal(err)
	}
	if err := protoregistry.GlobalFiles.RegisterFile(files[0]); err != nil {
		log.Fatal(err)
	}
}
