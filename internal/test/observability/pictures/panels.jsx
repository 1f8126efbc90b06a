// A panel of each kind, drawn by Grafana's own components. What they do not have is drawn here: the
// gauge's arc, and the state timeline on Grafana's plot.
import { useLayoutEffect, useState } from 'react';
import {
  FieldType, applyFieldOverrides, cacheFieldDisplayNames, dateTime, formattedValueToString, getDisplayProcessor, getDisplayValueAlignmentFactors, getFieldDisplayName,
  getFieldDisplayValues, standardFieldConfigEditorRegistry, standardTransformers, standardTransformersRegistry, transformDataFrame,
} from '@grafana/data';
import { BigValue, TimeSeries, UPlotChart, UPlotConfigBuilder, VizRepeater, measureText, useTheme2 } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { lastValueFrom } from 'rxjs';
import { range } from './prometheus.js';

const timeZone = 'utc';
const timeRange = { from: dateTime(range.from), to: dateTime(range.to), raw: { from: dateTime(range.from), to: dateTime(range.to) } };

// Which properties of a field there are, and of which fields.
const numbers = (field) => field.type === FieldType.number;
const all = (field) => field.type !== FieldType.time;
const property = (path, shouldApply, isCustom) => ({
  id: (isCustom ? 'custom.' : '') + path, path, isCustom, shouldApply, name: path, process: (value) => value,
});
standardFieldConfigEditorRegistry.setInit(() => [
  ...['unit', 'displayName', 'mappings', 'color', 'links', 'noValue'].map((path) => property(path, all)),
  ...['min', 'max', 'decimals', 'thresholds'].map((path) => property(path, numbers)),
  ...[
    'align', 'axisPlacement', 'axisSoftMax', 'axisSoftMin', 'cellOptions', 'drawStyle', 'fillOpacity', 'gradientMode', 'hidden', 'inspect', 'lineInterpolation', 'lineStyle',
    'lineWidth', 'pointSize', 'scaleDistribution', 'showPoints', 'spanNulls', 'stacking', 'thresholdsStyle', 'width',
  ].map((path) => property(path, () => true, true)),
]);
standardTransformersRegistry.setInit(() => [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer, standardTransformers.sortByTransformer, standardTransformers.orderFieldsTransformer, standardTransformers.renameFieldsTransformer, standardTransformers.filterFieldsByNameTransformer].map((transformation) => ({ id: transformation.id, name: transformation.name, transformation })));

// prepared is a panel's data with its units, colours and names.
export async function prepared(panel, frames, theme) {
  const fieldConfig = withoutNull(panel.fieldConfig);
  const transformed = await lastValueFrom(transformDataFrame(panel.transformations ?? [], frames));
  const out = applyFieldOverrides({ data: transformed, fieldConfig, replaceVariables: (text) => text, theme, timeZone });
  for (const field of out.flatMap((frame) => frame.fields).filter((one) => one.config.custom?.hidden)) {
    field.config.custom.hideFrom = { viz: true }; // its name since Grafana 12, which reads the older one too
  }
  cacheFieldDisplayNames(out);
  return out;
}

// withoutNull has the first threshold begin where numbers do, which JSON cannot say.
function withoutNull(config) {
  return JSON.parse(JSON.stringify(config), (key, value) => (key === 'steps' ? value.map((one) => ({ ...one, value: one.value ?? -Infinity })) : value));
}

export function Panel({ panel, data, alerts, width, height }) {
  const theme = useTheme2();
  const drawings = { stat: Stat, gauge: Dial, table: Rows, timeseries: Lines, 'state-timeline': States };
  const Drawing = drawings[panel.type];
  const empty = data.every((frame) => frame.length === 0);
  if (empty && panel.type !== 'stat' && panel.type !== 'gauge') {
    const style = { height, display: 'flex', alignItems: 'center', justifyContent: 'center', textAlign: 'center', color: theme.colors.text.secondary };
    return <div style={style}>{panel.fieldConfig.defaults.noValue ?? 'No data'}</div>;
  }
  return <Drawing {...{ panel, data, alerts, width, height, theme }} />;
}

function values(panel, data, theme, sparkline) {
  return getFieldDisplayValues({
    data, theme, timeZone, sparkline, fieldConfig: withoutNull(panel.fieldConfig), reduceOptions: panel.options.reduceOptions, replaceVariables: (text) => text,
  });
}

function Stat({ panel, data, width, height, theme }) {
  const { colorMode, graphMode, justifyMode, textMode, orientation } = panel.options;
  const draw = ({ value, alignmentFactors, width, height, count }) => (
    <BigValue {...{ width, height, count, theme, colorMode, graphMode, justifyMode, textMode, alignmentFactors }}
      value={value.display} sparkline={graphMode === 'none' ? undefined : value.sparkline} />
  );
  return <VizRepeater {...{ width, height, orientation }} source={data} autoGrid renderCounter={0} getAlignmentFactors={getDisplayValueAlignmentFactors} getValues={() => values(panel, data, theme, graphMode !== 'none')} renderValue={draw} />;
}

// Dial is an arc of 240 degrees, full as far as the value is, within the thresholds' colours.
function Dial({ panel, data, width, height, theme }) {
  const [{ display, field }] = values(panel, data, theme, false);
  const full = Math.min(1, (display.numeric - field.min) / (field.max - field.min)) || 0;
  const size = Math.min(width, height * 1.25);
  const radius = size / 2 - 8;
  const at = (share, r) => {
    const angle = ((share * 240 - 210) * Math.PI) / 180;
    return `${width / 2 + r * Math.cos(angle)} ${size / 2 + r * Math.sin(angle)}`;
  };
  const arc = (from, to, r) => `M ${at(from, r)} A ${r} ${r} 0 ${(to - from) * 240 > 180 ? 1 : 0} 1 ${at(to, r)}`;
  const steps = field.thresholds.steps.map((one, i, all) => [Math.max(0, one.value), all[i + 1]?.value ?? 1, one.color]);
  return (
    <svg width={width} height={height} fill="none">
      <path d={arc(0, 1, radius - 10)} stroke={theme.colors.background.secondary} strokeWidth="16" />
      {full > 0 && <path d={arc(0, full, radius - 10)} stroke={display.color} strokeWidth="16" />}
      {steps.map(([from, to, color]) => <path key={color} d={arc(from, to, radius + 3)} stroke={theme.visualization.getColorByName(color)} strokeWidth="4" />)}
      <text x={width / 2} y={size / 2 + 8} fill={display.color} textAnchor="middle" fontSize={display.text.length > 6 ? 14 : 24} fontWeight="500">{formattedValueToString(display)}</text>
    </svg>
  );
}

function Rows({ panel, data, width, height }) {
  return <TableNG data={data[0]} {...{ width, height, timeRange }} cellHeight={panel.options.cellHeight} noHeader={!panel.options.showHeader} enableVirtualization={false} structureRev={1} />;
}

function Lines({ panel, data, alerts, width, height, theme }) {
  return (
    <TimeSeries frames={data} {...{ width, height, timeRange, timeZone }} structureRev={1} legend={panel.options.legend} options={{}}>
      {(config) => mark(config, alerts, theme)}
    </TimeSeries>
  );
}

// mark draws when an annotation's alerts fired.
function mark(config, alerts, theme) {
  config.addHook('draw', (u) => {
    for (const { from, to, color } of alerts) {
      const [left, right] = [from, to].map((at) => u.valToPos(Math.max(at, range.from), 'x', true));
      const { top, height } = u.bbox;
      u.ctx.save();
      u.ctx.strokeStyle = u.ctx.fillStyle = theme.visualization.getColorByName(color);
      u.ctx.setLineDash([5, 5]);
      u.ctx.beginPath();
      for (const x of new Set([left, right])) {
        u.ctx.moveTo(x, top);
        u.ctx.lineTo(x, top + height);
      }
      u.ctx.stroke();
      u.ctx.globalAlpha = 0.1;
      u.ctx.fillRect(left, top, right - left, height);
      u.ctx.globalAlpha = 1;
      u.ctx.fillRect(left - 1, top + height, Math.max(right - left, 4), 4);
      u.ctx.restore();
    }
  });
  return null;
}

// States is a row of bars for each series: from a change of its value to the next, or to where it has none.
function States({ panel, data, width, height, theme }) {
  const [config, setConfig] = useState();
  const names = data.map((frame) => getFieldDisplayName(frame.fields[1], frame, data));
  const at = [...new Set(data.flatMap((frame) => frame.fields[0].values))].sort((a, b) => a - b);
  useLayoutEffect(() => {
    const builder = new UPlotConfigBuilder(timeZone);
    builder.addScale({ scaleKey: 'x', isTime: true, orientation: 0, direction: 1, range: () => [range.from, range.to] });
    builder.addScale({ scaleKey: 'y', orientation: 1, direction: -1, range: () => [0, data.length] });
    builder.addAxis({ scaleKey: 'x', isTime: true, placement: 'bottom', timeZone, theme, grid: { show: true } });
    builder.addAxis({
      scaleKey: 'y', placement: 'left', theme, size: 20 + Math.max(...names.map((name) => measureText(name, 12).width)), grid: { show: false }, ticks: { show: false },
      splits: () => data.map((_, i) => i + 0.5), values: () => names,
    });
    data.forEach(() => builder.addSeries({ scaleKey: 'y', theme, drawStyle: 'line', lineWidth: 0, showPoints: 'never', pathBuilder: () => null, pxAlign: true }));
    builder.addHook('draw', (u) => data.forEach((frame, row) => bars(u, panel, frame, row, theme)));
    setConfig(builder);
  }, [data, theme]);
  return config ? <UPlotChart {...{ config, width, height }} data={[at, ...data.map(() => at.map(() => null))]} timeRange={timeRange} /> : null;
}

function bars(u, panel, frame, row, theme) {
  const [time, value] = frame.fields;
  const step = time.config.interval;
  const thick = (u.bbox.height / u.data.slice(1).length) * panel.options.rowHeight;
  const middle = u.valToPos(row + 0.5, 'y', true);
  const display = value.display ?? getDisplayProcessor({ field: value, theme });
  for (let i = 0; i < frame.length; ) {
    let end = i + 1;
    while (end < frame.length && value.values[end] === value.values[i] && time.values[end] - time.values[end - 1] <= step) {
      end++;
    }
    const next = end < frame.length && time.values[end] - time.values[end - 1] <= step ? time.values[end] : time.values[end - 1] + (end < frame.length ? step : 0);
    const [left, right] = [time.values[i], Math.min(next, range.to)].map((ms) => u.valToPos(ms, 'x', true));
    const { text, color } = display(value.values[i]);
    u.ctx.save();
    u.ctx.globalAlpha = panel.fieldConfig.defaults.custom.fillOpacity / 100;
    u.ctx.fillStyle = color;
    u.ctx.fillRect(left, middle - thick / 2, right - left, thick);
    u.ctx.globalAlpha = 1;
    u.ctx.font = `${12 * devicePixelRatio}px ${theme.typography.fontFamily}`;
    if (u.ctx.measureText(text).width + 10 < right - left) {
      u.ctx.fillStyle = theme.colors.getContrastText(color);
      u.ctx.textAlign = 'left';
      u.ctx.textBaseline = 'middle';
      u.ctx.fillText(text, left + 5, middle);
    }
    u.ctx.restore();
    i = end;
  }
}
