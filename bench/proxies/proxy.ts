/** What is compared: each a program and the configuration that makes it do the sidecar's work. */

export interface ProxySetup {
  /** Empty, this proxy's own. */
  readonly directory: string;
  /** Where it listens, on 127.0.0.1. */
  readonly port: number;
  readonly upstreamPort: number;
  /** Whether the upstream speaks TLS; if so its certificate is verified, by SERVER_NAME. */
  readonly tls: boolean;
  /** What it speaks on either side. */
  readonly protocol: 'http1' | 'http2';
  readonly caFile: string;
  readonly token: string;
  /** Where the program can, each request has a proof that it holds the token's key. */
  readonly bound: boolean;
  /** Grants `token`, for those that ask for one. */
  readonly tokenUrl: { readonly port: number; readonly path: string };
}

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface ProxyKind {
  readonly name: string;
  /** How the proxy comes by the token. */
  readonly token: 'obtained' | 'static';
  /** What it is measured at. */
  readonly protocols: readonly ('http1' | 'http2')[];
  readonly bindsTokens?: true;
  /** Of the program, or undefined where it cannot be had. */
  version(): Promise<string | undefined>;
  /** Writes what configuration there is, and says how to start the program in the foreground. */
  prepare(setup: ProxySetup): Promise<Launch>;
}
