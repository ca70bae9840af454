import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashSecret } from '../../../src/issuer/secret-hashing.ts';
import { type Answer, connectClient } from '../../wire/raw-client.ts';
import { basic, FORM, type RunningIssuer, runIssuer } from './running-issuer.ts';

const BODY = 'grant_type=client_credentials';
const HOST = 'Host: issuer.test';
const TYPE = `Content-Type: ${FORM}`;
const AUTHORIZATION = `Authorization: ${basic('shop', 's3cret')}`;
const LENGTH = `Content-Length: ${BODY.length}`;

let issuer: RunningIssuer;
let path: string;

beforeAll(async () => {
  issuer = await runIssuer();
  path = new URL(issuer.tokenUrl).pathname;
});
afterAll(async () => await issuer.close());

async function answerTo(
  fields: readonly string[],
  body = BODY,
  line = `POST ${path} HTTP/1.1`,
): Promise<Answer> {
  const client = await connectClient(issuer.address);
  return await client.send(`${[line, ...fields].join('\r\n')}\r\n\r\n${body}`).response();
}

function expectRefusal(answer: Answer, status: number): void {
  expect(answer.status).toBe(status);
  expect(answer.head.value('content-type')).toBe('application/json');
  expect(answer.head.value('cache-control')).toBe('no-store');
  expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
}

describe('what is ambiguous or not HTTP/1.1 is refused', () => {
  const malformed: [name: string, fields: readonly string[], line?: string][] = [
    ['two Authorization headers', [HOST, TYPE, LENGTH, AUTHORIZATION, AUTHORIZATION]],
    ['two Content-Type headers', [HOST, TYPE, TYPE, LENGTH, AUTHORIZATION]],
    ['no Host', [TYPE, LENGTH, AUTHORIZATION]],
    ['two Hosts', [HOST, HOST, TYPE, LENGTH, AUTHORIZATION]],
    ['two lengths', [HOST, TYPE, LENGTH, 'Content-Length: 5', AUTHORIZATION]],
    ['length and chunked', [HOST, TYPE, LENGTH, 'Transfer-Encoding: chunked', AUTHORIZATION]],
    ['length that is no number', [HOST, TYPE, 'Content-Length: 2x', AUTHORIZATION]],
    ['chunked body without chunks', [HOST, TYPE, 'Transfer-Encoding: chunked', AUTHORIZATION]],
    ['space before the colon', [HOST, TYPE, LENGTH, AUTHORIZATION.replace(':', ' :')]],
    ['control character in a field', [HOST, TYPE, LENGTH, AUTHORIZATION, 'X: a\u0000b']],
    ['folded field', [HOST, TYPE, LENGTH, AUTHORIZATION, 'X: a\r\n b']],
    ['no HTTP at all', [], 'hello'],
    ['TLS', [], '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'],
  ];
  it.each(malformed)('%s: 400', async (_name, fields, line) => {
    expectRefusal(await answerTo(fields, BODY, line), 400);
  });

  it('a header section over the limit: 431', async () => {
    const fields = [HOST, TYPE, LENGTH, AUTHORIZATION, `X: ${'x'.repeat(17 * 1024)}`];
    expectRefusal(await answerTo(fields), 431);
  });

  it('CONNECT: 404', async () => {
    expectRefusal(await answerTo([HOST], '', 'CONNECT issuer.test:443 HTTP/1.1'), 404);
  });

  it('closes the connection after it', async () => {
    const client = await connectClient(issuer.address);
    client.send('hello\r\n\r\n');
    expect((await client.response()).status).toBe(400);
    expect(await client.closed()).toBe('end');
  });

  it('is not answered into the answer of the request before it', async () => {
    const held = Promise.withResolvers<Buffer>();
    const begun = Promise.withResolvers<void>();
    const secretHash = await hashSecret('x', { ln: 1, r: 1, p: 1 });
    const slow = await runIssuer([{ clientId: 'shop', secretHash }], {
      derive() {
        begun.resolve();
        return held.promise;
      },
    });
    try {
      const client = await connectClient(slow.address);
      const head = [`POST ${path} HTTP/1.1`, HOST, TYPE, LENGTH, AUTHORIZATION].join('\r\n');
      client.send(`${head}\r\n\r\n${BODY}`);
      await begun.promise;
      client.send('hello\r\n\r\n');
      await client.closed();
      expect(client.received.text).toBe('');
    } finally {
      held.resolve(Buffer.alloc(32));
      await slow.close();
    }
  });

  it('is counted as malformed', async () => {
    const own = await runIssuer();
    try {
      const client = await connectClient(own.address);
      client.send('hello\r\n\r\n');
      await client.closed();
      client.destroy();
      expect(await own.registry.metrics()).toContain('tokens_total{result="malformed"} 1');
    } finally {
      await own.close();
    }
  });
});

describe('what is unusual but clear is understood', () => {
  const unusual: [name: string, fields: readonly string[], body: string, line?: string][] = [
    ['chunked body', [HOST, TYPE, AUTHORIZATION, 'Transfer-Encoding: chunked'], chunked(BODY)],
    ['absolute form', [HOST, TYPE, LENGTH, AUTHORIZATION], BODY, 'absolute'],
    ['HTTP/1.0 without Host', [TYPE, LENGTH, AUTHORIZATION], BODY, 'HTTP/1.0'],
    [
      'field names in another case',
      [HOST, TYPE, LENGTH, AUTHORIZATION].map((field) => upperName(field)),
      BODY,
    ],
    [
      'Upgrade that we do not offer',
      [HOST, TYPE, LENGTH, AUTHORIZATION, 'Connection: Upgrade', 'Upgrade: h2c'],
      BODY,
    ],
    ['unknown expectation', [HOST, TYPE, LENGTH, AUTHORIZATION, 'Expect: miracles'], BODY],
  ];
  it.each(unusual)('%s', async (_name, fields, body, line) => {
    const lines: Readonly<Record<string, string>> = {
      absolute: `POST http://issuer.test${path} HTTP/1.1`,
      'HTTP/1.0': `POST ${path} HTTP/1.0`,
    };
    const answer = await answerTo(fields, body, line === undefined ? undefined : lines[line]);
    expect(answer.status).toBe(200);
  });

  it('two requests on one connection, sent at once', async () => {
    const client = await connectClient(issuer.address);
    const request = `${[`POST ${path} HTTP/1.1`, HOST, TYPE, LENGTH, AUTHORIZATION].join('\r\n')}\r\n\r\n${BODY}`;
    client.send(request + request);
    expect((await client.response()).status).toBe(200);
    expect((await client.response()).status).toBe(200);
  });

  it('100-continue is answered before the body comes', async () => {
    const client = await connectClient(issuer.address);
    const fields = [HOST, TYPE, LENGTH, AUTHORIZATION, 'Expect: 100-continue'];
    client.send(`${[`POST ${path} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n`);
    expect((await client.head()).status).toBe(100);
    expect((await client.send(BODY).response()).status).toBe(200);
  });
});

describe('limits', () => {
  it('too large a body is refused while it is being sent, and the rest of it is not reset', async () => {
    const rest = Buffer.alloc(900_000);
    const client = await connectClient(issuer.address);
    const fields = [HOST, TYPE, `Content-Length: ${rest.length}`, AUTHORIZATION];
    client.send(`${[`POST ${path} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n`);
    const answer = await client.response();
    expectRefusal(answer, 400);
    expect(answer.head.value('connection')).toBe('close');
    const failure = await new Promise((resolve) => client.socket.write(rest, resolve));
    expect(failure ?? null).toBeNull();
    expect(await client.closed()).toBe('end');
  });

  it('too large a chunked body is refused as soon as it has passed the limit', async () => {
    const client = await connectClient(issuer.address);
    const fields = [HOST, TYPE, 'Transfer-Encoding: chunked', AUTHORIZATION];
    client.send(`${[`POST ${path} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n`);
    client.send(`5000\r\n${'x'.repeat(0x5000)}\r\n`);
    expectRefusal(await client.response(), 400);
    client.send('0\r\n\r\n');
    expect(await client.closed()).toBe('end');
  });

  it('too large a body that is announced is not invited', async () => {
    const client = await connectClient(issuer.address);
    const fields = [HOST, TYPE, 'Content-Length: 500000', AUTHORIZATION, 'Expect: 100-continue'];
    client.send(`${[`POST ${path} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n`);
    const answer = await client.response();
    expect(answer.interim).toEqual([]);
    expectRefusal(answer, 400);
  });

  it('an endless body is cut off', async () => {
    const client = await connectClient(issuer.address);
    const fields = [HOST, TYPE, 'Content-Length: 100000000', AUTHORIZATION];
    client.send(`${[`POST ${path} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n`);
    expectRefusal(await client.response(), 400);
    const more = Buffer.alloc(64 * 1024);
    const pour = (): void => {
      while (client.socket.writable && client.socket.write(more));
      client.socket.once('drain', pour);
    };
    pour();
    await client.closed();
  });

  it.each([
    ['a head', `POST /x HTTP/1.1\r\nHost: x\r\n`],
    ['a body', `POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc`],
  ])('%s that does not arrive in time: 408', async (_name, start) => {
    const hasty = await runIssuer(undefined, { limits: { requestTimeoutMs: 200 } });
    try {
      const client = await connectClient(hasty.address);
      expectRefusal(await client.send(start).response(), 408);
      expect(await client.closed()).toBe('end');
      client.destroy();
    } finally {
      await hasty.close();
    }
  });
});

function chunked(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
}

function upperName(field: string): string {
  const colon = field.indexOf(':');
  return field.slice(0, colon).toUpperCase() + field.slice(colon);
}
