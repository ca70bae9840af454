/**
 * A checker that checks nothing: it brings the mutants into an order that the seed decides, and lets the first of them
 * pass. So a sample is drawn evenly, and a run that is ended by the clock has measured an even part.
 */

import { inSeededOrder } from '../even-part.ts';

interface Mutant {
  readonly id: string;
}

type Check = { readonly status: 'passed' } | { readonly status: 'compileError'; readonly reason: string };

class SeededOrder {
  async init(): Promise<void> {}

  /** Each chosen mutant is a group of its own, and those left out are one large group (or none). */
  async group(mutants: readonly Mutant[]): Promise<string[][]> {
    const seed = process.env['MUTATION_SEED'] ?? '';
    const order = inSeededOrder(mutants, seed).map(({ id }) => id);
    const size = Number(process.env['MUTATION_SAMPLE'] ?? order.length);
    const rest = order.slice(size);
    return [...order.slice(0, size).map((id) => [id]), ...(rest.length > 0 ? [rest] : [])];
  }

  async check(group: readonly Mutant[]): Promise<Record<string, Check>> {
    const check: Check =
      group.length === 1 ? { status: 'passed' } : { status: 'compileError', reason: 'outside the sample' };
    return Object.fromEntries(group.map(({ id }) => [id, check]));
  }
}

export const strykerPlugins = [{ kind: 'Checker', name: 'seeded-order', injectableClass: SeededOrder }];
