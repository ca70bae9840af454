import type { AppClient } from './app-client.ts';
import { DOWNLOAD_BYTES, digestOf, payloadFrom, randomOffset, UPLOAD_BYTES } from './payload.ts';

/** One request and its answer, which is verified. */
interface Exchange {
  readonly kind: string;
  /** Of a hundred. */
  readonly share: number;
  /** @throws {Error} saying what was wrong with the answer. */
  run(app: AppClient): Promise<void>;
}

const EXCHANGES: readonly Exchange[] = [
  { kind: 'GET, small', share: 42, run: (app) => getSmall(app, false) },
  { kind: 'GET, new connection', share: 3, run: (app) => getSmall(app, true) },
  { kind: 'POST, content-length', share: 15, run: (app) => echo(app, 1) },
  { kind: 'POST, chunked', share: 13, run: (app) => echo(app, 3) },
  { kind: 'POST, 100-continue', share: 4, run: (app) => echo(app, 1, true) },
  { kind: 'upload, 64 KiB', share: 10, run: upload },
  { kind: 'download, 1 MiB', share: 3, run: download },
  { kind: 'HEAD', share: 5, run: head },
  { kind: 'GET, 204', share: 5, run: nothing },
];

/** One of the exchanges, by its share. `random` is in [0, 1). */
export function pickExchange(random: number): Exchange {
  let rest = random * EXCHANGES.reduce((sum, { share }) => sum + share, 0);
  for (const exchange of EXCHANGES) {
    rest -= exchange.share;
    if (rest < 0) return exchange;
  }
  return EXCHANGES[0] as Exchange;
}

async function getSmall(app: AppClient, onNewConnection: boolean): Promise<void> {
  const query = `?q=${randomOffset()}`;
  const { body } = await app.exchange({ path: `/small${query}`, onNewConnection });
  expectSame('body', body.toString(), JSON.stringify({ asked: query }));
}

async function echo(app: AppClient, pieces: number, expectsContinue = false): Promise<void> {
  const sent = Array.from({ length: pieces }, () => payloadFrom(randomOffset(), 300));
  const { body } = await app.exchange({ method: 'POST', path: '/echo', body: sent, expectsContinue });
  if (!body.equals(Buffer.concat(sent))) throw new Error('the body is not what was sent');
}

async function upload(app: AppClient): Promise<void> {
  const sent = payloadFrom(randomOffset(), UPLOAD_BYTES);
  const { body } = await app.exchange({ method: 'POST', path: '/digest', body: [sent] });
  expectSame('digest', body.toString(), digestOf(sent));
}

async function download(app: AppClient): Promise<void> {
  const offset = randomOffset();
  const { body } = await app.exchange({ path: `/payload?offset=${offset}&chunked=${offset % 2}` });
  expectSame('length', body.byteLength, DOWNLOAD_BYTES);
  if (!body.equals(payloadFrom(offset, DOWNLOAD_BYTES))) throw new Error('the body is not what was sent');
}

async function head(app: AppClient): Promise<void> {
  const { headers, body } = await app.exchange({ method: 'HEAD', path: '/payload?offset=0' });
  expectSame('content-length', headers['content-length'], String(DOWNLOAD_BYTES));
  expectSame('length of the body', body.byteLength, 0);
}

async function nothing(app: AppClient): Promise<void> {
  const { body } = await app.exchange({ path: '/nothing' }, 204);
  expectSame('length of the body', body.byteLength, 0);
}

function expectSame<T extends string | number | undefined>(what: string, got: T, expected: T): void {
  if (got !== expected) throw new Error(`${what} is ${got}, not ${expected}`);
}
