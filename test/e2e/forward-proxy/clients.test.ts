/** Real, unmodified HTTP clients that know nothing but their proxy setting. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { selfSigned } from '../../wire/certificate.ts';
import { FIRST } from '../../wire/fake-bearer.ts';
import { forwardTo, startSidecar } from '../../wire/sidecar.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';

const run = promisify(execFile);

/** Where `install-clients.ts` puts what is not on every machine. */
const PYTHON_PACKAGES = join(import.meta.dirname, '../../../.cache/python');

const BODY = 'a body of some length';

/** The API: says who was let in and what it got. */
const api: RequestListener = async (request: IncomingMessage, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { authorization, host } = request.headers;
  response.end(
    JSON.stringify({
      authorized: authorization === FIRST,
      host,
      path: request.url,
      body: String(Buffer.concat(chunks)),
    }),
  );
};

interface Call {
  /** `http://127.0.0.1:PORT` of the sidecar. */
  readonly proxy: string;
  readonly url: string;
}

/** Each posts BODY to the URL and prints the answer's body. */
const CLIENTS: Readonly<Record<string, (call: Call) => Promise<string>>> = {
  curl: ({ proxy, url }) =>
    command('curl', ['--silent', '--show-error', '--data', BODY, url], { http_proxy: proxy }),

  'Node fetch': ({ proxy, url }) => {
    const script = `
      const response = await fetch(${JSON.stringify(url)}, { method: 'POST', body: ${JSON.stringify(BODY)} });
      process.stdout.write(await response.text());`;
    return command(process.execPath, ['--use-env-proxy', '--input-type=module', '--eval', script], {
      HTTP_PROXY: proxy,
    });
  },

  'undici EnvHttpProxyAgent': ({ proxy, url }) => {
    const script = `
      import { EnvHttpProxyAgent, fetch } from 'undici';
      const dispatcher = new EnvHttpProxyAgent();
      const response = await fetch(${JSON.stringify(url)}, { method: 'POST', body: ${JSON.stringify(BODY)}, dispatcher });
      process.stdout.write(await response.text());`;
    return command(process.execPath, ['--input-type=module', '--eval', script], { HTTP_PROXY: proxy });
  },

  'Python urllib': ({ proxy, url }) => {
    const script = `
import urllib.request
print(urllib.request.urlopen(${JSON.stringify(url)}, data=${JSON.stringify(BODY)}.encode()).read().decode(), end="")`;
    return command('python3', ['-c', script], { http_proxy: proxy });
  },

  'Python requests': ({ proxy, url }) => {
    const script = `
import requests
print(requests.post(${JSON.stringify(url)}, data=${JSON.stringify(BODY)}).text, end="")`;
    return command('python3', ['-c', script], { HTTP_PROXY: proxy, PYTHONPATH: PYTHON_PACKAGES });
  },

  'Java HttpClient': ({ proxy, url }) => {
    const { hostname, port } = new URL(proxy);
    const source = join(import.meta.dirname, 'HttpClientCall.java');
    return command('java', [source, hostname, port, url, BODY], {});
  },
};

async function command(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const { PATH = '', HOME = '', JAVA_HOME } = process.env;
  const { stdout } = await run(file, args, {
    env: { PATH, HOME, ...(JAVA_HOME === undefined ? {} : { JAVA_HOME }), ...env },
    cwd: import.meta.dirname,
    timeout: 60_000,
  });
  return stdout;
}

async function listen(server: ReturnType<typeof createServer>): Promise<{ host: string; port: number }> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

it('what the Python client needs is installed', () => {
  expect(existsSync(join(PYTHON_PACKAGES, 'requests'))).toBe(true);
});

describe.each(Object.entries(CLIENTS))('%s with its proxy set to the sidecar', (_name, call) => {
  it('reaches a listed API with a token', async () => {
    const address = await listen(createServer(api));
    const sidecar = await startSidecar({ forwardProxy: forwardTo({ address }) });
    const authority = `127.0.0.1:${address.port}`;
    const answer = await call({
      proxy: `http://127.0.0.1:${sidecar.address.port}`,
      url: `http://${authority}/path?query=1`,
    });
    expect(JSON.parse(answer)).toEqual({
      authorized: true,
      host: authority,
      path: '/path?query=1',
      body: BODY,
    });
  });

  it('reaches one over TLS that it asked for by http', async () => {
    const certificate = selfSigned('127.0.0.1');
    const address = await listen(createTlsServer(certificate, api));
    const caFile = await temporaryFile('ca.crt', certificate.cert);
    const sidecar = await startSidecar({
      forwardProxy: forwardTo({ address }, { upgradeToTls: true, tls: { caFile } }),
    });
    const answer = await call({
      proxy: `http://127.0.0.1:${sidecar.address.port}`,
      url: `http://127.0.0.1:${address.port}/`,
    });
    expect(JSON.parse(answer)).toMatchObject({ authorized: true, body: BODY });
  });
});

it('curl reaches a listed host through a tunnel, without a token', async () => {
  const certificate = selfSigned('127.0.0.1');
  const address = await listen(createTlsServer(certificate, api));
  const caFile = await temporaryFile('ca.crt', certificate.cert);
  const sidecar = await startSidecar({ forwardProxy: forwardTo({ address }, {}, { connect: 'tunnel' }) });
  const answer = await command(
    'curl',
    ['--silent', '--show-error', '--cacert', caFile, `https://127.0.0.1:${address.port}/`],
    { https_proxy: `http://127.0.0.1:${sidecar.address.port}` },
  );
  expect(JSON.parse(answer)).toMatchObject({ authorized: false });
});
