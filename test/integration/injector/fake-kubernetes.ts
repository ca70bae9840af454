/**
 * As much of a Kubernetes API server as the program uses, on real HTTP, or HTTPS: objects with resource versions and conflicts,
 * lists and watches of one name, Events, strategic merges of webhooks by name, and failures on demand.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';

export interface StoredObject {
  readonly metadata: {
    readonly name: string;
    readonly resourceVersion?: string;
    readonly [key: string]: unknown;
  };
  readonly [key: string]: unknown;
}

interface Watcher {
  readonly collection: string;
  readonly name: string | undefined;
  readonly response: ServerResponse;
}

interface Change {
  readonly version: number;
  readonly collection: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: StoredObject;
}

/** What happens to the next request that matches: a status, a broken connection, or an answer held back. */
export type Failure =
  | { readonly status: number; readonly retryAfter?: string }
  | 'disconnect'
  | { readonly until: Promise<void> };

const ANSWERED: Answer = {
  code: 403,
  value: { message: 'admission webhook "…" denied the request: the webhook of token-sidecar answers' },
};

export class FakeKubernetes {
  /** As `PUT /path`, in the order of coming. */
  readonly requests: string[] = [];
  /** The Accept field of each of them. */
  readonly accepted: (string | undefined)[] = [];
  /** Of which lists are asked for as a whole; others are of one name. */
  readonly collections = new Set(['/api/v1/pods']);
  /** What answers `METHOD /path` in the place of what is stored. */
  readonly answers = new Map<string, (body: unknown) => Answer | Promise<Answer>>();
  readonly #server: Server;
  /** PEM; undefined without TLS. */
  readonly #authority: string | undefined;
  readonly #objects = new Map<string, StoredObject>();
  readonly #watchers = new Set<Watcher>();
  readonly #changes: Change[] = [];
  readonly #failures: { readonly pattern: RegExp; readonly failure: Failure }[] = [];
  #waiting: (() => void)[] = [];
  #version = 100;
  /** Watches from before this version are answered 410. */
  #oldest = 0;
  minor = '31';
  /** Whether the webhook refuses dry runs of ConfigMaps, in its words. */
  webhookAnswers = true;

  private constructor(scheme: 'http' | 'https') {
    const listener = (request: IncomingMessage, response: ServerResponse): void => {
      this.#answer(request, response).catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
    };
    if (scheme === 'http') {
      this.#server = createServer(listener);
    } else {
      const authority = createCertificateAuthority('fake cluster');
      this.#authority = authority.cert;
      this.#server = createSecureServer(authority.issue('fake API server', '127.0.0.1'), listener);
    }
  }

  static async start(scheme: 'http' | 'https' = 'http'): Promise<FakeKubernetes> {
    const fake = new FakeKubernetes(scheme);
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve));
    onTestFinished(async () => {
      fake.#server.closeAllConnections();
      await new Promise((resolve) => fake.#server.close(resolve));
    });
    return fake;
  }

  /** Path of a kubeconfig that leads here. */
  async kubeconfig(namespace = 'token-sidecar'): Promise<string> {
    const directory = await mkdtemp(join(tmpdir(), 'fake-kubernetes-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, 'kubeconfig');
    const { port } = this.#server.address() as AddressInfo;
    const cluster =
      this.#authority === undefined
        ? { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true }
        : {
            server: `https://127.0.0.1:${port}`,
            'certificate-authority-data': Buffer.from(this.#authority).toString('base64'),
          };
    await writeFile(
      path,
      JSON.stringify({
        clusters: [{ name: 'fake', cluster }],
        users: [{ name: 'fake', user: { token: 'service-account-token' } }],
        contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'fake', namespace } }],
        'current-context': 'fake',
      }),
    );
    return path;
  }

  /** What a collection holds, in the order of being made. */
  stored(collection: string): readonly StoredObject[] {
    const isIn = (path: string): boolean => path.slice(0, path.lastIndexOf('/')) === collection;
    return [...this.#objects].filter(([path]) => isIn(path)).map(([, object]) => object);
  }

  get(path: string): StoredObject | undefined {
    return this.#objects.get(path);
  }

  /** Stores an object as if somebody else had, and tells the watchers. */
  put(collection: string, object: StoredObject): void {
    const path = `${collection}/${object.metadata.name}`;
    const type = this.#objects.has(path) ? 'MODIFIED' : 'ADDED';
    const version = ++this.#version;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    this.#objects.set(path, stored);
    this.#tell({ version, collection, type, object: stored });
  }

  delete(collection: string, name: string): void {
    const object = this.#objects.get(`${collection}/${name}`);
    if (object === undefined) return;
    this.#objects.delete(`${collection}/${name}`);
    this.#tell({ version: ++this.#version, collection, type: 'DELETED', object });
  }

  /** Lets the next request fail whose `METHOD path?query` matches. */
  failNext(pattern: RegExp, failure: Failure): void {
    this.#failures.push({ pattern, failure });
  }

  /** Breaks off every watch in the middle. */
  breakWatches(): void {
    for (const { response } of this.#watchers) response.destroy();
  }

  /** Ends every watch in order, as the server does after some minutes. */
  endWatches(): void {
    for (const { response } of this.#watchers) response.end();
  }

  /** Forgets the past: watches end, and those that want to go on from before are answered 410. */
  expireWatches(): void {
    this.#oldest = ++this.#version;
    this.endWatches();
  }

  sendToWatches(event: object): void {
    for (const { response } of this.#watchers) response.write(`${JSON.stringify(event)}\n`);
  }

  get watches(): number {
    return this.#watchers.size;
  }

  /** Resolves once `condition` holds, which is looked at after each request and each change of a watch. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #tell(change: Change): void {
    this.#changes.push(change);
    for (const watcher of this.#watchers) this.#send(watcher, change);
    this.#wake();
  }

  #send({ collection, name, response }: Watcher, { type, object, ...change }: Change): void {
    if (
      response.writableEnded ||
      collection !== change.collection ||
      (name !== undefined && name !== object.metadata.name)
    )
      return;
    response.write(`${JSON.stringify({ type, object })}\n`);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams, search } = new URL(request.url ?? '/', 'http://server');
    const body = await bodyOf(request);
    const line = `${request.method} ${pathname}${search}`;
    this.requests.push(line);
    this.accepted.push(request.headers.accept);
    response.once('close', () => this.#wake());
    const index = this.#failures.findIndex(({ pattern }) => pattern.test(line));
    const [found] = index < 0 ? [] : this.#failures.splice(index, 1);
    if (found?.failure === 'disconnect') {
      response.destroy();
    } else if (found !== undefined && 'status' in found.failure) {
      const { status, retryAfter } = found.failure;
      response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end('{}');
    } else {
      if (found !== undefined && 'until' in found.failure) await found.failure.until;
      await this.#serve(request, pathname, searchParams, body, response);
    }
  }

  async #serve(
    { method, headers }: IncomingMessage,
    path: string,
    query: URLSearchParams,
    body: unknown,
    response: ServerResponse,
  ): Promise<void> {
    const isWatch = query.get('watch') === 'true';
    if (isWatch && Number(query.get('resourceVersion')) >= this.#oldest) {
      this.#watch(path, query, response);
      return;
    }
    const special = this.answers.get(`${method} ${path}`);
    const { code, value, text }: Answer =
      headers.authorization !== 'Bearer service-account-token'
        ? refusal(401)
        : special !== undefined
          ? await special(body)
          : isWatch
            ? refusal(410)
            : method === 'GET'
              ? this.#read(path, query)
              : method === 'POST'
                ? query.has('dryRun')
                  ? this.webhookAnswers
                    ? ANSWERED
                    : { code: 201, value: {} }
                  : this.#create(path, body as StoredObject)
                : method === 'PUT'
                  ? this.#replace(path, body as StoredObject)
                  : path.endsWith('/status')
                    ? this.#mergeStatus(path, body as { readonly status: object })
                    : this.#merge(path, body as MergePatch);
    response.writeHead(code, { 'content-type': 'application/json' }).end(text ?? JSON.stringify(value));
  }

  #watch(collection: string, query: URLSearchParams, response: ServerResponse): void {
    const since = Number(query.get('resourceVersion'));
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    const watcher = { collection, name: nameIn(query), response };
    for (const change of this.#changes) if (change.version > since) this.#send(watcher, change);
    this.#watchers.add(watcher);
    response.once('close', () => {
      this.#watchers.delete(watcher);
      this.#wake();
    });
    this.#wake();
  }

  #read(path: string, query: URLSearchParams): Answer {
    if (path === '/version') return { code: 200, value: { major: '1', minor: this.minor } };
    const name = nameIn(query);
    if (name === undefined && this.collections.has(path)) return this.#page(path, query);
    const found = this.#objects.get(name === undefined ? path : `${path}/${name}`);
    if (name === undefined) return found === undefined ? refusal(404) : { code: 200, value: found };
    const items = found === undefined ? [] : [found];
    return { code: 200, value: { metadata: { resourceVersion: String(this.#version) }, items } };
  }

  /** As many as `limit` says at a time; the token for the next page is where it begins. */
  #page(collection: string, query: URLSearchParams): Answer {
    const all = this.stored(collection);
    const from = Number(query.get('continue') ?? 0);
    const to = from + Number(query.get('limit') ?? all.length);
    const more = to < all.length ? { continue: String(to) } : {};
    const metadata = { resourceVersion: String(this.#version), ...more };
    return { code: 200, value: { metadata, items: all.slice(from, to) } };
  }

  #create(collection: string, object: StoredObject): Answer {
    const path = `${collection}/${object.metadata.name}`;
    if (this.#objects.has(path)) return refusal(409);
    this.put(collection, object);
    return { code: 201, value: this.#objects.get(path) };
  }

  #replace(path: string, object: StoredObject): Answer {
    const existing = this.#objects.get(path);
    if (existing === undefined) return refusal(404);
    if (existing.metadata.resourceVersion !== object.metadata.resourceVersion) return refusal(409);
    this.put(path.slice(0, path.lastIndexOf('/')), object);
    return { code: 200, value: this.#objects.get(path) };
  }

  /** Of a custom resource, whose collection is that of the whole cluster. */
  #mergeStatus(path: string, { status }: { readonly status: object }): Answer {
    const [, root, plural, name] =
      /^(\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/[^/]+)?\/([^/]+)\/([^/]+)\/status$/.exec(path) ?? [];
    const existing = this.#objects.get(`${root}/${plural}/${name}`);
    if (existing === undefined) return refusal(404);
    this.put(`${root}/${plural}`, { ...existing, status });
    return { code: 200, value: this.#objects.get(`${root}/${plural}/${name}`) };
  }

  #merge(path: string, patch: MergePatch): Answer {
    const existing = this.#objects.get(path) as (StoredObject & MergePatch) | undefined;
    if (existing === undefined) return refusal(404);
    const webhooks = existing.webhooks.map((webhook) => {
      const change = patch.webhooks.find(({ name }) => name === webhook.name);
      return { ...webhook, clientConfig: { ...webhook.clientConfig, ...change?.clientConfig } };
    });
    this.put(path.slice(0, path.lastIndexOf('/')), { ...existing, webhooks });
    return { code: 200, value: this.#objects.get(path) };
  }
}

export interface Answer {
  readonly code: number;
  readonly value: unknown;
  /** In the place of the value's JSON. */
  readonly text?: string;
}

interface MergePatch {
  readonly webhooks: readonly { readonly name: string; readonly clientConfig: object }[];
}

function nameIn(query: URLSearchParams): string | undefined {
  return /^metadata\.name=(.+)$/.exec(query.get('fieldSelector') ?? '')?.[1];
}

function refusal(code: number): Answer {
  return { code, value: { kind: 'Status', apiVersion: 'v1', status: 'Failure', code } };
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  return text === '' ? undefined : JSON.parse(text);
}
