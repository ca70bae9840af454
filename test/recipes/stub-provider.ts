import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { startConnectProxy } from '../support/connect-proxy.ts';

/** One request as the provider sees it. */
export interface Asked {
  readonly method: string;
  /** Host and path. */
  readonly place: string;
  readonly authorization: string;
  readonly contentType: string;
  readonly accept: string;
  readonly userAgent: string;
  readonly body: string;
  readonly form: URLSearchParams;
}

/** Status and fields of an answer; undefined for a request that the provider does not understand. */
export type Provider = (asked: Asked) => { readonly status: number; readonly json: unknown } | undefined;

const authority = createCertificateAuthority('Recipes CA');

/** A server that answers for a host of the Internet, which is reached by the proxy that this resolves to. */
export async function startProvider(host: string, answer: Provider) {
  const asked: Asked[] = [];
  const server = createServer(authority.issue('provider', host), async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    const { authorization = '', accept = '' } = request.headers;
    const one: Asked = {
      method: request.method ?? '',
      place: `${request.headers.host}${request.url}`,
      authorization,
      contentType: request.headers['content-type'] ?? '',
      accept,
      userAgent: request.headers['user-agent'] ?? '',
      body,
      form: new URLSearchParams(body),
    };
    asked.push(one);
    const { status, json } = answer(one) ?? { status: 400, json: { error: 'invalid_request' } };
    response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
    response.end(JSON.stringify(json));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const proxy = await startConnectProxy({ host: '127.0.0.1', port });
  return { asked, ca: authority.cert, proxy: `http://127.0.0.1:${proxy.config.port}` };
}
