// The upstream of the gRPC tests: grpc-go with health checking and reflection. It refuses calls without the token, and
// prints a line of JSON for every call that has ended.
package main

import (
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"token-sidecar/test/e2e/grpc/echo"
)

const mostMessageBytes = 8 << 20

func main() {
	prefix := flag.String("authorization", "Bearer ", "what the authorization of every call must begin with")
	revoked := flag.String("revoked", "", "an authorization that is refused after its first call")
	connectionAge := flag.Duration("connection-age", 0, "after how long a connection gets a GOAWAY")
	certificate := flag.String("cert", "", "PEM file; without it the server speaks h2c")
	key := flag.String("key", "", "PEM file")
	flag.Parse()

	calls := &calls{prefix: *prefix, revoked: *revoked, out: json.NewEncoder(os.Stdout)}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(mostMessageBytes),
		grpc.StreamInterceptor(calls.stream),
		grpc.UnaryInterceptor(calls.unary),
	}
	if *connectionAge > 0 {
		options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: *connectionAge}))
	}
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&service, struct{}{})
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("{\"port\":%d}\n", listener.Addr().(*net.TCPAddr).Port)
	// The tests end it by closing its input, or by ending themselves.
	go func() {
		io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}

var service = grpc.ServiceDesc{
	ServiceName: echo.Service,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		unaryMethod("Once", func(_ context.Context, text []byte) ([]byte, error) { return text, nil }),
		unaryMethod("Hang", func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, status.FromContextError(ctx.Err()).Err()
		}),
		unaryMethod("Fail", func(_ context.Context, text []byte) ([]byte, error) {
			code, err := strconv.Atoi(string(text))
			if err != nil {
				return nil, err
			}
			return nil, status.Error(codes.Code(code), "as asked for: 100 % ☂")
		}),
	},
	Streams: []grpc.StreamDesc{
		{StreamName: "Split", Handler: split, ServerStreams: true},
		{StreamName: "Linger", Handler: linger, ServerStreams: true},
		{StreamName: "Join", Handler: join, ClientStreams: true},
		{StreamName: "Converse", Handler: converse, ClientStreams: true, ServerStreams: true},
	},
	Metadata: echo.File,
}

func unaryMethod(name string, answer func(context.Context, []byte) ([]byte, error)) grpc.MethodDesc {
	handler := func(ctx context.Context, message any) (any, error) {
		value, err := answer(ctx, message.(*wrapperspb.BytesValue).Value)
		return wrapperspb.Bytes(value), err
	}
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(server any, ctx context.Context, read func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			message := new(wrapperspb.BytesValue)
			if err := read(message); err != nil {
				return nil, err
			}
			info := &grpc.UnaryServerInfo{Server: server, FullMethod: "/" + echo.Service + "/" + name}
			return intercept(ctx, message, info, handler)
		},
	}
}

func split(_ any, stream grpc.ServerStream) error {
	text, err := receive(stream)
	if err != nil {
		return err
	}
	for _, word := range strings.Fields(string(text)) {
		if err := send(stream, []byte(word)); err != nil {
			return err
		}
	}
	return nil
}

func linger(_ any, stream grpc.ServerStream) error {
	text, err := receive(stream)
	if err != nil {
		return err
	}
	if err := send(stream, text); err != nil {
		return err
	}
	<-stream.Context().Done()
	return status.FromContextError(stream.Context().Err()).Err()
}

func join(_ any, stream grpc.ServerStream) error {
	var words []string
	for {
		word, err := receive(stream)
		if err == io.EOF {
			return send(stream, []byte(strings.Join(words, " ")))
		}
		if err != nil {
			return err
		}
		words = append(words, string(word))
	}
}

func converse(_ any, stream grpc.ServerStream) error {
	for {
		text, err := receive(stream)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := send(stream, text); err != nil {
			return err
		}
	}
}

func receive(stream grpc.ServerStream) ([]byte, error) {
	message := new(wrapperspb.BytesValue)
	err := stream.RecvMsg(message)
	return message.Value, err
}

func send(stream grpc.ServerStream, text []byte) error {
	return stream.SendMsg(wrapperspb.Bytes(text))
}

// calls checks the authorization of every call, answers its metadata, and prints how it ended.
type calls struct {
	prefix, revoked string
	mutex           sync.Mutex
	used            bool
	out             *json.Encoder
}

func (c *calls) unary(ctx context.Context, message any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
	defer func() { c.ended(ctx, info.FullMethod, err) }()
	header, err := c.admit(ctx)
	if err != nil {
		return nil, err
	}
	grpc.SetHeader(ctx, header)
	grpc.SetTrailer(ctx, header)
	return handle(ctx, message)
}

func (c *calls) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	defer func() { c.ended(stream.Context(), info.FullMethod, err) }()
	header, err := c.admit(stream.Context())
	if err != nil {
		return err
	}
	stream.SetHeader(header)
	stream.SetTrailer(header)
	return handle(server, stream)
}

// admit returns the metadata to be answered.
func (c *calls) admit(ctx context.Context) (metadata.MD, error) {
	received, _ := metadata.FromIncomingContext(ctx)
	authorization := received.Get("authorization")
	if len(authorization) != 1 || !strings.HasPrefix(authorization[0], c.prefix) || c.isRevoked(authorization[0]) {
		return nil, status.Errorf(codes.Unauthenticated, "%d values of authorization, or a wrong one", len(authorization))
	}
	answered := metadata.MD{}
	for _, name := range []string{"echo-text", "echo-bin"} {
		answered.Append(name, received.Get(name)...)
	}
	return answered, nil
}

func (c *calls) isRevoked(authorization string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if authorization != c.revoked || c.used {
		return authorization == c.revoked
	}
	c.used = true
	return false
}

func (c *calls) ended(ctx context.Context, method string, err error) {
	received, _ := metadata.FromIncomingContext(ctx)
	code := status.Code(err)
	if contextErr := ctx.Err(); contextErr != nil {
		code = status.FromContextError(contextErr).Code()
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.out.Encode(map[string]any{
		"method":        method[strings.LastIndex(method, "/")+1:],
		"authorization": append([]string{}, received.Get("authorization")...),
		"status":        code.String(),
	})
}
