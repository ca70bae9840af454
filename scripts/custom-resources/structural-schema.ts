/** JSON Schema to the structural schemas that Kubernetes takes for custom resources. */

import type { Rule } from './rules.ts';

export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly additionalProperties?: boolean | JsonSchema;
}

export interface StructuralSchema extends JsonSchema {
  readonly maxProperties?: number;
  readonly 'x-kubernetes-validations'?: readonly Rule[];
}

/** Bounds of whatever has none, without which the API server would not know what a rule may cost it. */
const MAX_CHARACTERS = 4096;
const MAX_ITEMS = 64;

export interface SchemaWords {
  /** By path: `credentials[].secret.name`; '' is the whole. */
  readonly descriptions: Readonly<Record<string, string>>;
  readonly rules: Readonly<Record<string, readonly Rule[]>>;
}

/**
 * @param path of the schema, for what is said of it.
 * @throws {Error} for a field that nothing is said of, and for what Kubernetes has no schema for.
 */
export function structuralSchema(schema: JsonSchema, words: SchemaWords, path = ''): StructuralSchema {
  const { type, properties, items, additionalProperties, pattern } = schema;
  if (type === undefined) throw new Error(`${path}: a value of Kubernetes has one type`);
  const own = path.endsWith('[]') || path.endsWith('{}') ? undefined : words.descriptions[path];
  if (own === undefined && !path.endsWith('[]') && !path.endsWith('{}')) {
    throw new Error(`${path}: say in descriptions.ts what it is`);
  }
  const rules = words.rules[path];
  const inner = (part: JsonSchema, name: string): StructuralSchema =>
    structuralSchema(part, words, path + name);
  return {
    ...(own === undefined ? {} : { description: own }),
    type,
    ...(schema.enum === undefined ? {} : { enum: schema.enum }),
    ...(type === 'string' ? stringBounds(schema) : {}),
    ...(pattern === undefined ? {} : { pattern: re2(pattern) }),
    ...numberBounds(schema),
    ...(type === 'array' ? { minItems: schema.minItems ?? 0, maxItems: schema.maxItems ?? MAX_ITEMS } : {}),
    ...(items === undefined ? {} : { items: inner(items, '[]') }),
    ...(typeof additionalProperties === 'object'
      ? { additionalProperties: inner(additionalProperties, '{}'), maxProperties: MAX_ITEMS }
      : {}),
    ...(schema.required === undefined || schema.required.length === 0 ? {} : { required: schema.required }),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, part]) => [
              name,
              inner(part, path === '' ? name : `.${name}`),
            ]),
          ),
        }),
    ...(rules === undefined ? {} : { 'x-kubernetes-validations': rules }),
  };
}

function stringBounds({ enum: words, minLength, maxLength, pattern }: JsonSchema): StructuralSchema {
  if (words !== undefined) return {};
  // The names of credentials and routes, which rules compare.
  const isShort = pattern?.includes('{0,61}') === true;
  return {
    ...(minLength === undefined ? {} : { minLength }),
    maxLength: maxLength ?? (isShort ? 63 : MAX_CHARACTERS),
  };
}

function numberBounds({ minimum, maximum }: JsonSchema): StructuralSchema {
  return { ...(minimum === undefined ? {} : { minimum }), ...(maximum === undefined ? {} : { maximum }) };
}

/** Kubernetes' regular expressions know no lookahead: without it they refuse less, and the injector refuses the rest. */
function re2(pattern: string): string {
  let result = '';
  for (let at = 0; at < pattern.length; at++) {
    if (!pattern.startsWith('(?!', at)) {
      result += pattern[at];
      continue;
    }
    for (let depth = 0; at < pattern.length; at++) {
      if (pattern[at] === '\\') at++;
      else if (pattern[at] === '(') depth++;
      else if (pattern[at] === ')' && --depth === 0) break;
    }
  }
  return result;
}
