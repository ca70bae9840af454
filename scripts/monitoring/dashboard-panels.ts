/** The few kinds of Grafana panels that the dashboard is made of. */

import { RUNBOOKS } from './rule-groups.ts';

export interface Query {
  readonly expr: string;
  readonly legend?: string;
}

/** A panel without its place; the layout gives it id and position. */
export interface Panel {
  readonly width: number;
  readonly height: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export type Unit =
  | 'short'
  | 's'
  | 'bytes'
  | 'percentunit'
  | 'reqps'
  | 'ops'
  | 'dateTimeFromNow'
  | 'bool_yes_no';

export const DATASOURCE = { type: 'prometheus', uid: '$datasource' };

function targets(
  queries: readonly Query[],
  format: 'time_series' | 'heatmap' | 'table',
  instant: boolean,
): unknown {
  return queries.map(({ expr, legend }, index) => ({
    datasource: DATASOURCE,
    editorMode: 'code',
    expr,
    format,
    instant,
    range: !instant,
    legendFormat: legend ?? '__auto',
    refId: String.fromCharCode('A'.charCodeAt(0) + index),
  }));
}

/** One figure. `thresholds` colour it: from each value on, in ascending order. */
export function stat(
  title: string,
  description: string,
  unit: Unit,
  query: Query,
  thresholds: readonly { readonly from: number | null; readonly color: 'green' | 'orange' | 'red' }[],
): Panel {
  return {
    width: 4,
    height: 4,
    body: {
      type: 'stat',
      title,
      description,
      datasource: DATASOURCE,
      targets: targets([query], 'time_series', true),
      fieldConfig: {
        defaults: {
          unit,
          thresholds: {
            mode: 'absolute',
            steps: thresholds.map(({ from, color }) => ({ value: from, color })),
          },
        },
        overrides: [],
      },
      options: {
        colorMode: 'value',
        graphMode: 'none',
        reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
      },
    },
  };
}

/** Lines over time; `stacked` for parts of a whole. */
export function lines(
  title: string,
  description: string,
  unit: Unit,
  queries: readonly Query[],
  options: { readonly stacked?: boolean; readonly width?: number } = {},
): Panel {
  const stacked = options.stacked ?? false;
  return {
    width: options.width ?? 12,
    height: 8,
    body: {
      type: 'timeseries',
      title,
      description,
      datasource: DATASOURCE,
      targets: targets(queries, 'time_series', false),
      fieldConfig: {
        defaults: {
          unit,
          custom: {
            drawStyle: 'line',
            lineWidth: 1,
            fillOpacity: stacked ? 40 : 5,
            showPoints: 'never',
            stacking: { mode: stacked ? 'normal' : 'none', group: 'A' },
          },
          ...(unit === 'bool_yes_no' ? { min: 0, max: 1 } : {}),
        },
        overrides: [],
      },
      options: {
        legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
        tooltip: { mode: 'multi', sort: 'desc' },
      },
    },
  };
}

/** Distribution over time, from classic histogram buckets. */
export function heatmap(title: string, description: string, query: Query): Panel {
  return {
    width: 12,
    height: 8,
    body: {
      type: 'heatmap',
      title,
      description,
      datasource: DATASOURCE,
      targets: targets([{ ...query, legend: '{{le}}' }], 'heatmap', false),
      fieldConfig: { defaults: {}, overrides: [] },
      options: {
        calculate: false,
        cellGap: 1,
        color: { mode: 'scheme', scheme: 'Oranges', steps: 64 },
        yAxis: { unit: 's' },
        tooltip: { mode: 'single', yHistogram: false },
      },
    },
  };
}

/** One row a series, its labels as columns. */
export function table(title: string, description: string, unit: Unit, column: string, query: Query): Panel {
  return {
    width: 12,
    height: 8,
    body: {
      type: 'table',
      title,
      description,
      datasource: DATASOURCE,
      targets: targets([query], 'table', true),
      // Only what fails is listed: nothing is good news.
      fieldConfig: { defaults: { unit, noValue: 'none' }, overrides: [] },
      transformations: [
        {
          id: 'organize',
          options: { excludeByName: { Time: true }, renameByName: { Value: column }, indexByName: {} },
        },
      ],
      options: { showHeader: true },
    },
  };
}

/** The panel with links to the pages of the alerts that are about what it shows. */
export function about(panel: Panel, ...alerts: readonly string[]): Panel {
  const links = alerts.map((alert) => ({
    title: `Runbook: ${alert}`,
    url: `${RUNBOOKS}/${alert}.md`,
    targetBlank: true,
  }));
  return { ...panel, body: { ...panel.body, links } };
}

export interface Row {
  readonly title: string;
  readonly collapsed: boolean;
  readonly panels: readonly Panel[];
}

/** Places panels left to right, wrapping at Grafana's 24 columns, under one row after another. */
export function layOut(rows: readonly Row[]): unknown[] {
  let id = 1;
  let y = 0;
  const placed: unknown[] = [];
  for (const row of rows) {
    const header = {
      id: id++,
      type: 'row',
      title: row.title,
      collapsed: row.collapsed,
      gridPos: { x: 0, y, w: 24, h: 1 },
    };
    y += 1;
    let x = 0;
    let lineHeight = 0;
    const panels: unknown[] = [];
    for (const panel of row.panels) {
      if (x + panel.width > 24) {
        x = 0;
        y += lineHeight;
        lineHeight = 0;
      }
      panels.push({ id: id++, ...panel.body, gridPos: { x, y, w: panel.width, h: panel.height } });
      x += panel.width;
      lineHeight = Math.max(lineHeight, panel.height);
    }
    y += lineHeight;
    if (row.collapsed) placed.push({ ...header, panels });
    else placed.push({ ...header, panels: [] }, ...panels);
  }
  return placed;
}
