import { getEventListeners, once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CredentialConfig } from '../../src/config/config.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import type { ClientCredentials } from '../../src/token/client/client-authentication.ts';
import { sendProviderRequest } from '../../src/token/provider/provider-request.ts';
import { createTokenEndpoint } from '../../src/token/provider/token-endpoint.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { answer, answerToken, ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { RawProvider, tokenAnswer } from './raw-provider.ts';

const CREDENTIALS: ClientCredentials = {
  method: 'client_secret_basic',
  encoding: 'form',
  clientId: 'shop',
  clientSecret: 's3cret',
};

function client(settings: Partial<CredentialConfig> & { tokenUrl: string }) {
  const endpoint = createTokenEndpoint(credentialConfig(settings), systemClock);
  onTestFinished(() => endpoint.close());
  return {
    request: (credentials = CREDENTIALS, signal = new AbortController().signal) =>
      endpoint.requestToken(credentials, signal),
  };
}

/** A server of bytes, for answers that no HTTP library would give. */
async function rawServer(onConnection: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
}

it('without an issuer there are no metadata', async () => {
  const endpoint = createTokenEndpoint(credentialConfig({ tokenUrl: 'https://sso/token' }), systemClock);
  onTestFinished(() => endpoint.close());
  expect([endpoint.tokenUrl(), endpoint.metadata()]).toEqual(['https://sso/token', undefined]);
});

describe('a token request', () => {
  it('is a form POST of the grant with HTTP Basic', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const outcome = await client({
      tokenUrl: provider.url,
      scope: 'read write',
      audience: 'payments',
    }).request();
    expect(outcome).toEqual({ result: 'success', accessToken: 'token-1', lifetimeMs: 300_000 });
    const [received] = provider.received;
    expect(received).toMatchObject({
      path: '/realms/dx/protocol/openid-connect/token',
      contentType: 'application/x-www-form-urlencoded',
      authorization: `Basic ${Buffer.from('shop:s3cret').toString('base64')}`,
    });
    expect([...(received?.form ?? [])]).toEqual([
      ['grant_type', 'client_credentials'],
      ['scope', 'read write'],
      ['audience', 'payments'],
    ]);
  });

  it('repeats a parameter that has several values', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    await client({
      tokenUrl: provider.url,
      parameters: { resource: ['https://a', 'https://b'], x: 'one' },
    }).request();
    expect(provider.received[0]?.form.getAll('resource')).toEqual(['https://a', 'https://b']);
    expect(provider.received[0]?.form.get('x')).toBe('one');
  });

  it('is sent in one piece with its length', async () => {
    const provider = await RawProvider.start((socket) => void socket.write(tokenAnswer()));
    await client({ tokenUrl: provider.url }).request();
    const [head = '', form = ''] = provider.requests[0]?.text.split('\r\n\r\n') ?? [];
    expect(head).toMatch(/^POST \/token HTTP\/1\.1\r\n/);
    expect(form).toBe('grant_type=client_credentials');
    expect(head).toMatch(new RegExp(`^content-length: ${form.length}$`, 'im'));
    expect(head).not.toMatch(/transfer-encoding|expect:/i);
  });

  it('reuses the previous connection', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const { request } = client({ tokenUrl: provider.url });
    const abort = new AbortController();
    await request(CREDENTIALS, abort.signal);
    // Too late: it has its answer.
    abort.abort();
    await request();
    expect(provider.received.map(({ connection }) => connection)).toEqual([1, 1]);
  });
});

describe('an answer without a token', () => {
  it.each([
    [
      'HTML',
      answer(200, '<html></html>', { 'content-type': 'text/html' }),
      'status 200 with text/html where a JSON object was expected',
    ],
    ['an empty 200', answer(200, ''), 'status 200 with an empty body where a JSON object was expected'],
    ['an empty 204', answer(204, ''), 'status 204'],
    ['10 MB', answer(200, 'x'.repeat(10_000_000)), 'an answer of more than 262144 bytes'],
    ['a redirect', answer(302, '', { location: 'http://127.0.0.1:1/' }), 'status 302'],
    [
      'a redirect that asks for the same again',
      answer(307, '', { location: 'http://127.0.0.1:1/' }),
      'status 307',
    ],
    [
      'token_type mac',
      answerToken({ token_type: 'mac' }),
      'token_type is MAC: every request with such a token needs a proof, which the sidecar does not make',
    ],
    ['expires_in -1', answerToken({ expires_in: -1 }), 'expires_in is not a number of seconds from 1'],
  ])('%s', async (_name, script, detail) => {
    const provider = await ScriptedTokenEndpoint.start(script);
    expect(await client({ tokenUrl: provider.url }).request()).toEqual({
      result: 'invalid_response',
      detail,
      ...(detail.startsWith('status') && !detail.startsWith('status 200') ? { blames: 'unsaid' } : {}),
    });
    expect(provider.received).toHaveLength(1);
  });

  const LENGTH_100 = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n';
  const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

  it.each([
    ['not HTTP at all', 'SSH-2.0-OpenSSH_9.2\r\n', 'HPE_INVALID_CONSTANT'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}', 'HPE_'],
    ['a length and chunks', tokenAnswer('transfer-encoding: chunked\r\n'), 'HPE_'],
    ['a control character in a field', tokenAnswer('x: a\u0001b\r\n'), 'HPE_INVALID_HEADER_TOKEN'],
    ['a chunk without a size', `${CHUNKED}2\r\n{}\r\nzz\r\n`, 'HPE_INVALID_CHUNK_SIZE'],
    ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}`, 'HPE_HEADER_OVERFLOW'],
  ])('%s', async (_name, text, code) => {
    const { url: tokenUrl } = await RawProvider.start((socket) => void socket.end(text));
    expect(await client({ tokenUrl }).request()).toEqual({
      result: 'invalid_response',
      detail: expect.stringMatching(new RegExp(`^not an HTTP answer \\(${code}\\w*\\)$`)),
    });
  });

  it('in another protocol closes the connection', async () => {
    const provider = await RawProvider.start(
      (socket) =>
        void socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    );
    expect(await client({ tokenUrl: provider.url }).request()).toEqual({
      result: 'invalid_response',
      detail: 'status 101',
      blames: 'unsaid',
    });
    await provider.closed(1);
  });

  it.each([
    ['a head', 'HTTP/1.1 200 OK\r\ncontent-'],
    ['a body shorter than it says', `${LENGTH_100}{"access_`],
    ['a body without its last chunk', `${CHUNKED}9\r\n{"access_\r\n`],
  ])('that is %s is broken off', async (_name, text) => {
    const provider = await RawProvider.start((socket) => void socket.end(text));
    const outcome = await client({ tokenUrl: provider.url }).request();
    expect(outcome).toEqual({ result: 'unavailable', detail: 'ECONNRESET' });
    expect(provider.requests).toHaveLength(1);
  });
});

describe('an unusual answer with a token', () => {
  const body = JSON.stringify({ access_token: 'token', token_type: 'Bearer', expires_in: 300 });

  it.each([
    ['after 100', `HTTP/1.1 100 Continue\r\n\r\n${tokenAnswer()}`],
    ['after 103', `HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${tokenAnswer()}`],
    ['with a byte order mark', tokenAnswer('', `\ufeff${body}`)],
    ['as long as is allowed', tokenAnswer('', body.padEnd(256 * 1024))],
    ['with something behind it', `${tokenAnswer()}something`],
    ['twice', tokenAnswer() + tokenAnswer()],
  ])('%s', async (_name, text) => {
    const { url: tokenUrl } = await RawProvider.start((socket) => void socket.write(text));
    const { request } = client({ tokenUrl });
    // The second would find what the first left behind.
    for (let count = 0; count < 2; count++) {
      expect(await request()).toEqual({ result: 'success', accessToken: 'token', lifetimeMs: 300_000 });
    }
  });
});

it('a provider’s Retry-After is reported', async () => {
  const provider = await ScriptedTokenEndpoint.start(answer(429, '', { 'retry-after': '7' }));
  expect(await client({ tokenUrl: provider.url }).request()).toEqual({
    result: 'unavailable',
    detail: 'status 429',
    blames: 'unsaid',
    retryAfterMs: 7000,
  });
});

describe('a provider that repeats the request in its error', () => {
  const said = async (credentials: ClientCredentials, description: string) => {
    const refusal = JSON.stringify({ error: 'invalid_client', error_description: description });
    const provider = await ScriptedTokenEndpoint.start(answer(401, refusal));
    const outcome = await client({ tokenUrl: provider.url }).request(credentials);
    return outcome.result === 'rejected' ? outcome.detail : outcome;
  };

  it.each<[string, ClientCredentials, string, string]>([
    [
      'a secret and its id',
      { method: 'client_secret_post', clientId: 'sh op', clientSecret: 's3 cret' },
      'secret s3 cret of sh op is wrong',
      'secret […] of […] is wrong',
    ],
    [
      'Basic as the standard has it',
      { method: 'client_secret_basic', encoding: 'form', clientId: 'sh op', clientSecret: 's3 cret' },
      `got ${Buffer.from('sh+op:s3+cret').toString('base64')}`,
      'got […]',
    ],
    [
      'Basic without encoding',
      { method: 'client_secret_basic', encoding: 'raw', clientId: 'sh op', clientSecret: 's3 cret' },
      `got ${Buffer.from('sh op:s3 cret').toString('base64')}`,
      'got […]',
    ],
    [
      'the id of a client without a secret',
      { method: 'tls_client_auth', clientId: 'shop', certificate: 'C', privateKey: 'K' },
      'no certificate of shop is known',
      'no certificate of […] is known',
    ],
  ])('has its message shown without %s', async (_name, credentials, description, shown) => {
    expect(await said(credentials, description)).toBe(`status 401 invalid_client: ${shown}`);
  });

  it('has its message shown unchanged if the client has neither id nor secret', async () => {
    const { directory } = await mountSecret({ token: 'a.b.c' });
    const credentials = {
      method: 'kubernetes_jwt',
      directory,
      tokenFile: 'token',
      clientId: undefined,
    } as const;
    expect(await said(credentials, 'token expired')).toBe('status 401 invalid_client: token expired');
  });
});

it('an answered request leaves no listener on its signal', async () => {
  const provider = await ScriptedTokenEndpoint.start();
  const agent = new http.Agent();
  const { signal } = new AbortController();
  await sendProviderRequest({ url: new URL(provider.url), agent }, signal);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

it('an answered request leaves no timer', async () => {
  const provider = await ScriptedTokenEndpoint.start();
  const clock = new ManualClock();
  const endpoint = createTokenEndpoint(credentialConfig({ tokenUrl: provider.url }), clock);
  onTestFinished(() => endpoint.close());
  await endpoint.requestToken(CREDENTIALS, new AbortController().signal);
  expect(clock.pendingTimers).toBe(0);
});

describe('a provider that does not answer', () => {
  it('refuses the connection', async () => {
    const outcome = await client({ tokenUrl: 'http://127.0.0.1:1/token' }).request();
    expect(outcome).toEqual({ result: 'unavailable', detail: 'ECONNREFUSED' });
  });

  it('accepts the connection and is silent, which times out', async () => {
    const tokenUrl = await rawServer(() => {});
    const outcome = await client({ tokenUrl, requestTimeoutMs: 100 }).request();
    expect(outcome).toEqual({ result: 'unavailable', detail: 'no whole answer within 0.1 s' });
  });

  it('accepts the connection and begins no TLS, which times out', async () => {
    const tokenUrl = (await rawServer(() => {})).replace('http:', 'https:');
    const outcome = await client({ tokenUrl, requestTimeoutMs: 100 }).request();
    expect(outcome).toEqual({ result: 'unavailable', detail: 'no whole answer within 0.1 s' });
  });

  it('sends one byte at a time, which times out as a whole', async () => {
    const tokenUrl = await rawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n');
      const drip = setInterval(() => socket.write('x'), 10);
      socket.once('close', () => clearInterval(drip));
    });
    const outcome = await client({ tokenUrl, requestTimeoutMs: 200 }).request();
    expect(outcome).toEqual({ result: 'unavailable', detail: 'no whole answer within 0.2 s' });
  });

  it('answers too late for a caller that gave up', async () => {
    const tokenUrl = await rawServer(() => {});
    const abort = new AbortController();
    const outcome = client({ tokenUrl }).request(CREDENTIALS, abort.signal);
    abort.abort();
    expect(await outcome).toMatchObject({ result: 'unavailable' });
  });

  it('is given up before there is a connection', async () => {
    const agent = new http.Agent();
    const abort = new AbortController();
    const sent = sendProviderRequest({ url: new URL('http://127.0.0.1:1/'), agent }, abort.signal);
    abort.abort(new Error('enough'));
    await expect(sent).rejects.toThrow('enough');
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
  });
});

it('an unreadable certificate file is named', async () => {
  const outcome = await client({
    tokenUrl: 'https://127.0.0.1:1/token',
    tls: { caFile: '/nonexistent/ca.crt' },
  }).request();
  expect(outcome).toMatchObject({
    result: 'unavailable',
    detail: expect.stringContaining('/nonexistent/ca.crt cannot be read'),
  });
});
