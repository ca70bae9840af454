import type { ValueFormat } from '../../config/values.ts';

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

export interface Quantity {
  readonly text: string;
  /** In cores or bytes. */
  readonly amount: number;
}

/** A Kubernetes quantity such as `10m`, `0.5`, `64Mi`, or `1e+08`, Helm's notation for large numbers. Not negative. */
export const quantity: ValueFormat<Quantity> = {
  expected: 'a quantity such as 10m, 0.5 or 64Mi',
  parse(text) {
    const [, number, suffix = '', exponent = ''] =
      /^(\d{1,15}(?:\.\d{1,20})?)(?:([numkMGTPE]|[KMGTPE]i)|([eE][+-]?\d{1,3}))?$/.exec(text) ?? [];
    if (number === undefined) return undefined;
    return { text, amount: Number(number + exponent) * (SUFFIXES[suffix] as number) };
  },
};
