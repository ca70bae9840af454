import {
  type KubernetesApi,
  KubernetesApiError,
  type Query,
  type WatchEvent,
} from '../../src/platform/kubernetes/api.ts';

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query?: Query | undefined;
  readonly body?: Readonly<Record<string, never>> | undefined;
}

/** An API in this process that answers by what the test says of each request; a number is a failure's status. */
export function scriptedKubernetes(answer: (asked: Asked) => unknown) {
  const asked: Asked[] = [];
  const streams: {
    readonly query: Query;
    readonly send: (event: WatchEvent) => void;
    readonly end: () => void;
  }[] = [];
  const api: KubernetesApi = {
    async request<T>(
      method: string,
      path: string,
      options: { query?: Query; body?: object } = {},
    ): Promise<T> {
      const request = { method, path, query: options.query, body: options.body as never };
      asked.push(request);
      const given = answer(request);
      if (typeof given === 'number')
        throw new KubernetesApiError(`${method} ${path}: status ${given}`, given);
      return given as T;
    },
    watch: (_path, query, send, signal) =>
      new Promise((resolve) => {
        streams.push({ query, send, end: resolve });
        signal.addEventListener('abort', () => resolve(), { once: true });
      }),
  };
  return { api, asked, streams };
}
