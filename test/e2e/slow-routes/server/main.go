// Everything at the far end of the wire that speaks TLS: a provider, an upstream, a collector, the Kubernetes API, and a
// Redis as far as the token cache asks it when it connects. Go's TLS refuses a client that asks for a name with a dot at its
// end. Arguments: the files of certificate and key, and the token. Prints a line when it listens, and one for spans.
package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	certificate, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	token := os.Args[3]
	over := &tls.Config{Certificates: []tls.Certificate{certificate}}
	serve := func(port string, answer http.HandlerFunc) {
		listener, err := tls.Listen("tcp", ":"+port, over)
		if err != nil {
			log.Fatal(err)
		}
		go http.Serve(listener, answer)
	}
	serve("8443", func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(request.URL.Path, "/.well-known/") {
			fmt.Fprintf(answer, `{"issuer":"https://%s","token_endpoint":"https://%[1]s/token"}`, request.Host)
		} else {
			fmt.Fprintf(answer, `{"access_token":"%s","token_type":"Bearer","expires_in":300}`, token)
		}
	})
	serve("9443", func(answer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "Bearer "+token {
			answer.WriteHeader(http.StatusUnauthorized)
		}
		io.WriteString(answer, request.Host)
	})
	serve("4318", func(_ http.ResponseWriter, request *http.Request) {
		io.Copy(io.Discard, request.Body)
		fmt.Println("spans")
	})
	serve("6443", func(answer http.ResponseWriter, _ *http.Request) {
		io.WriteString(answer, `{"major":"1"}`)
	})
	cache, err := tls.Listen("tcp", ":6379", over)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			connection, err := cache.Accept()
			if err != nil {
				return
			}
			go answerCommands(connection)
		}
	}()
	fmt.Println("listening")
	select {}
}

// What follows the head of an array of RESP (*2) is its command.
func answerCommands(connection io.ReadWriteCloser) {
	defer connection.Close()
	lines := bufio.NewScanner(connection)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "*") {
			continue
		}
		lines.Scan()
		lines.Scan()
		if lines.Text() == "PTTL" {
			io.WriteString(connection, ":-2\r\n")
		} else {
			io.WriteString(connection, "+OK\r\n")
		}
	}
}
