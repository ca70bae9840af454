/** What the benchmark uses of http-proxy, which brings no types. */
declare module 'http-proxy' {
  import type { Agent, IncomingMessage, ServerResponse } from 'node:http';

  interface ProxyServer {
    web(request: IncomingMessage, response: ServerResponse): void;
    on(
      event: 'error',
      listener: (error: Error, request: IncomingMessage, response: ServerResponse) => void,
    ): this;
  }

  const httpProxy: {
    createProxyServer(options: {
      target: string;
      agent: Agent;
      headers: Readonly<Record<string, string>>;
    }): ProxyServer;
  };
  export default httpProxy;
}
