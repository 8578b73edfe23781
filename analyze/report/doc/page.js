"use strict";
// Values below the pointer, zoom by brushing, and series that a click on the legend
// hides, for the groups that package figure writes.
(() => {
  const units = {
    number: [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"]],
    bytes: [[1, " B"], [2 ** 10, " KiB"], [2 ** 20, " MiB"], [2 ** 30, " GiB"], [2 ** 40, " TiB"]],
    percent: [[.01, " %"]],
    duration: [[1e-9, " ns"], [1e-6, " µs"], [1e-3, " ms"], [1, " s"], [60, " min"], [3600, " h"], [86400, " d"]],
  };
  const digits = v => String(Math.abs(v) >= 100 ? Math.round(v) : +v.toPrecision(3)).replace("-", "−");
  function format(v, quantity) {
    if (v === 0 || !isFinite(v)) return String(v);
    if (quantity == "number" && Math.abs(v) < 1e4 && v === Math.trunc(v)) return digits(v);
    const all = units[quantity] || units.number;
    const [size, name] = all.findLast(u => Math.abs(v) * (1 + 1e-9) >= u[0]) || all[0];
    return digits(v / size) + name;
  }

  // An axis between two coordinates of the picture.
  class Axis {
    constructor(text, from, to) {
      const [quantity, kind, lo, hi] = text.split(" ");
      Object.assign(this, {quantity, log: kind == "log", from, to});
      this.full = this.range = [+lo, +hi].map(v => this.log ? Math.log10(v) : v);
    }
    share(at, [lo, hi] = this.range) { return lo + (at - this.from) / (this.to - this.from) * (hi - lo); }
    value(at) { const v = this.share(at); return this.log ? 10 ** v : v; }
    // place returns where a coordinate of the whole picture is in the zoomed one.
    place(at) { return this.at(this.share(at, this.full)); }
    at(v) { const [lo, hi] = this.range; return this.from + (v - lo) / (hi - lo) * (this.to - this.from); }
    text(at) { return format(this.value(at), this.quantity); }
    ticks(room) {
      const [lo, hi] = this.range.map(v => this.log ? 10 ** v : v);
      if (this.log && hi / lo > 10) {
        const all = [];
        for (let e = Math.floor(Math.log10(lo)); e <= Math.log10(hi); e++)
          for (const m of hi / lo > 1e3 ? [1] : [1, 2, 5]) all.push(m * 10 ** e);
        return all.filter(v => v >= lo && v <= hi).map(v => [this.at(Math.log10(v)), format(v, this.quantity)]);
      }
      const unit = this.quantity == "duration" && hi >= 60 ? 60 : 1;
      const least = (hi - lo) / room / unit, power = 10 ** Math.floor(Math.log10(least));
      const step = unit * power * [1, 2, 5, 10].find(m => m * power >= least * (1 - 1e-9));
      const all = [];
      for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi * (1 + 1e-9); i++)
        all.push([this.at(this.log ? Math.log10(i * step) : i * step), format(+(i * step).toPrecision(12), this.quantity)]);
      return all;
    }
  }

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const hidden = new Set();

  // points returns the lines of a path: arrays of coordinates. Figures have relative ones after the first.
  function points(path) {
    const lines = [];
    let line, x, y;
    for (const [, command, numbers] of (path.getAttribute("d") || "").matchAll(/([MlZ])([^MlZ]*)/g)) {
      const v = (numbers.match(/-?[\d.]+/g) || []).map(Number);
      if (command == "M") lines.push(line = [[x, y] = v]);
      else for (let i = 0; i + 1 < v.length; i += 2) line.push([x += v[i], y += v[i + 1]]);
    }
    return lines;
  }

  class Series {
    constructor(group) {
      this.group = group;
      this.name = group.dataset.name;
      const paths = [...group.querySelectorAll("path")];
      const titles = paths.map(p => p.querySelector("title")?.textContent || "");
      group.querySelectorAll("title").forEach(t => t.remove()); // the values replace them
      this.bars = group.classList.contains("bars");
      this.dots = group.classList.contains("points");
      this.path = paths[0];
      this.all = [];
      paths.forEach((p, i) => {
        if (!this.bars && getComputedStyle(p).stroke == "none") return; // the area below a line
        for (const line of points(p)) this.all.push({line, title: titles[i]});
      });
      if (!this.bars && !this.dots) this.all = this.all.filter(l => l.line.length > 1);
    }
    color() { const {stroke, fill} = getComputedStyle(this.path); return stroke != "none" ? stroke : fill; }
    // near returns what the series has at a place: a text, and how far away it is.
    near(x, y, axes) {
      if (!this.path || hidden.has(this.name)) return;
      let best;
      if (this.dots) {
        for (const {line, title} of this.all) { // dots that overlap are one line
          const b = axes.y.place(line[0][1]), a = Math.min(Math.max(x, axes.x.place(line[0][0])), axes.x.place(line.at(-1)[0]));
          const far = Math.hypot(a - x, b - y);
          if (far < 14 && (!best || far < best.far)) best = {far, title, a, b};
        }
        return best && (best.title.includes(",") ? best.title : axes.x.text(best.a) + ", " + axes.y.text(best.b));
      }
      if (this.bars) {
        const bar = this.all.find(({line}) => { const xs = line.map(p => axes.x.place(p[0])); return x >= Math.min(...xs) && x <= Math.max(...xs) + 1; });
        return bar && bar.title;
      }
      for (const {line} of this.all) for (let i = 1; i < line.length; i++) {
        const [a, b] = [line[i - 1], line[i]], [u, v] = [axes.x.place(a[0]), axes.x.place(b[0])];
        if (u == v || x < Math.min(u, v) || x > Math.max(u, v)) continue;
        const at = axes.y.place(a[1] + (b[1] - a[1]) * (x - u) / (v - u)), far = Math.abs(at - y);
        if (!best || far < best.far) best = {far, text: axes.y.text(at)};
      }
      return best && best.text;
    }
  }

  class Panel {
    constructor(group) {
      this.group = group;
      this.svg = group.ownerSVGElement;
      const [l, t, r, b] = group.dataset.frame.split(" ").map(Number);
      this.frame = {l, t, r, b};
      this.axes = {x: new Axis(group.dataset.x, l, r), y: new Axis(group.dataset.y, b, t)};
      this.plot = group.querySelector(".plot");
      this.series = [...group.querySelectorAll(".series")].map(g => new Series(g));
      for (const entry of group.querySelectorAll(".entry")) {
        const room = entry.getBBox(); // letters and lines are hard to hit
        this.make("rect", {x: room.x - 3, y: room.y - 3, width: room.width + 6, height: room.height + 6, fill: "none", "pointer-events": "all"}, entry);
        entry.setAttribute("role", "button");
        entry.setAttribute("tabindex", "0");
        entry.setAttribute("aria-pressed", "true");
        entry.addEventListener("click", () => toggle(entry.dataset.name));
        entry.addEventListener("keydown", e => { if (e.key == "Enter" || e.key == " ") { e.preventDefault(); toggle(entry.dataset.name); } });
      }
      this.cross = this.make("path", {stroke: "#646c77", "stroke-width": 1, "stroke-dasharray": "2 2", "pointer-events": "none"}, group);
      this.box = this.make("rect", {fill: "#6699cc", "fill-opacity": .2, "pointer-events": "none", width: 0, height: 0}, group);
    }
    make(name, attributes, into) {
      const e = document.createElementNS(this.svg.namespaceURI, name);
      for (const key in attributes) e.setAttribute(key, attributes[key]);
      into?.append(e);
      return e;
    }
    inside([x, y]) { const f = this.frame; return x >= f.l - 4 && x <= f.r + 4 && y >= f.t - 4 && y <= f.b + 4; }
    limit([x, y]) { const f = this.frame; return [Math.min(Math.max(x, f.l), f.r), Math.min(Math.max(y, f.t), f.b)]; }
    hover(at, event) {
      if (!this.inside(at)) return this.leave();
      const [x, y] = this.limit(at), rows = [];
      for (const s of this.series) {
        const text = s.near(x, y, this.axes);
        if (text) rows.push([s, text]);
      }
      this.cross.setAttribute("d", `M${x} ${this.frame.t}V${this.frame.b}`);
      if (!rows.length) return void (tip.hidden = true);
      tip.replaceChildren();
      if (rows.some(([s]) => !s.bars && !s.dots)) tip.append(this.axes.x.text(x));
      for (const [s, text] of rows.slice(0, 12)) {
        const row = document.createElement("div"), mark = document.createElement("i");
        mark.style.background = s.color();
        row.append(mark, s.name && !text.startsWith(s.name) ? s.name + "  " + text : text);
        tip.append(row);
      }
      tip.hidden = false;
      const room = document.documentElement.clientWidth - tip.offsetWidth - 4;
      tip.style.left = Math.max(0, Math.min(event.pageX + 14, room)) + "px";
      tip.style.top = event.pageY + 16 + "px";
    }
    leave() { this.cross.removeAttribute("d"); tip.hidden = true; }
    brush(from, to) {
      const f = this.frame, [a, b] = [this.limit(from), this.limit(to)];
      const flat = Math.abs(a[1] - b[1]) < 12; // only along x
      return {l: Math.min(a[0], b[0]), r: Math.max(a[0], b[0]), t: flat ? f.t : Math.min(a[1], b[1]), b: flat ? f.b : Math.max(a[1], b[1])};
    }
    show(b) { for (const [k, v] of [["x", b.l], ["y", b.t], ["width", b.r - b.l], ["height", b.b - b.t]]) this.box.setAttribute(k, v); }
    zoom(b) {
      const {x, y} = this.axes;
      if (b) [x.range, y.range] = [[x.share(b.l), x.share(b.r)], [y.share(b.b), y.share(b.t)]];
      else [x.range, y.range] = [x.full, y.full];
      this.redraw(!!b);
    }
    redraw(zoomed) {
      const f = this.frame, {x, y} = this.axes;
      if (!this.clip) {
        const id = "clip" + document.querySelectorAll("clipPath").length, cut = this.make("clipPath", {id}, this.group);
        this.make("rect", {x: f.l, y: f.t, width: f.r - f.l, height: f.b - f.t}, cut);
        this.clip = this.make("g", {});
        this.plot.replaceWith(this.clip);
        this.clip.append(this.plot);
        this.clip.dataset.id = id;
      }
      if (zoomed) this.clip.setAttribute("clip-path", `url(#${this.clip.dataset.id})`); else this.clip.removeAttribute("clip-path");
      this.plot.classList.toggle("zoomed", zoomed);
      const [a, b, c, d] = [x.place(f.l), x.place(f.r), y.place(f.t), y.place(f.b)], p = (b - a) / (f.r - f.l), q = (d - c) / (f.b - f.t);
      if (zoomed) this.plot.setAttribute("transform", `matrix(${p} 0 0 ${q} ${a - p * f.l} ${c - q * f.t})`); else this.plot.removeAttribute("transform");
      for (const mark of this.group.querySelectorAll(".mark")) {
        const at = +mark.dataset.at, side = mark.classList.contains("side"), to = side ? y.place(at) : x.place(at);
        mark.setAttribute("transform", side ? `translate(0 ${to - at})` : `translate(${to - at} 0)`);
        mark.style.display = side ? (to < f.t - 1 || to > f.b + 1 ? "none" : "") : to < f.l - 1 || to > f.r + 1 ? "none" : "";
      }
      for (const e of this.group.querySelectorAll(".axis, .labels")) e.style.display = zoomed ? "none" : "";
      this.ticks?.remove();
      if (!zoomed) return;
      this.ticks = this.make("g", {"font-size": 11.5, fill: "#646c77"});
      this.clip.before(this.ticks);
      let grid = "", end = -Infinity;
      for (const [at, text] of x.ticks((f.r - f.l) / 70)) {
        grid += `M${at} ${f.t}V${f.b}`;
        if (at - end < 7 * text.length) continue;
        this.make("text", {x: at, y: f.b + 17, "text-anchor": "middle"}, this.ticks).textContent = text;
        end = at;
      }
      for (const [at, text] of y.ticks((f.b - f.t) / 40)) {
        grid += `M${f.l} ${at}H${f.r}`;
        this.make("text", {x: f.l - 7, y: at + 4, "text-anchor": "end"}, this.ticks).textContent = text;
      }
      this.make("path", {d: grid, stroke: "#e7e9ec"}, this.ticks);
    }
  }

  const panels = [...document.querySelectorAll(".panel")].map(g => new Panel(g));
  function toggle(name) {
    if (!hidden.delete(name)) hidden.add(name);
    for (const e of document.querySelectorAll(".entry, .series")) {
      if (e.dataset.name != name) continue;
      if (e.classList.contains("entry")) e.setAttribute("aria-pressed", !hidden.has(name));
      else e.style.display = hidden.has(name) ? "none" : "";
    }
  }
  for (const panel of panels) {
    const svg = panel.svg;
    const at = e => { const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse()); return [p.x, p.y]; };
    let from;
    svg.addEventListener("pointermove", e => {
      const to = at(e);
      if (from) panel.show(panel.brush(from, to)); else panel.hover(to, e);
    });
    svg.addEventListener("pointerleave", () => panel.leave());
    svg.addEventListener("pointerdown", e => {
      if (e.button || !panel.inside(at(e))) return;
      from = at(e);
      if (e.pointerType == "mouse") e.preventDefault();
      svg.setPointerCapture(e.pointerId);
    });
    const stop = e => {
      const box = from && panel.brush(from, at(e));
      from = undefined;
      panel.show({l: 0, r: 0, t: 0, b: 0});
      if (e.type == "pointerup" && box && box.r - box.l > 6) panel.zoom(box);
    };
    svg.addEventListener("pointerup", stop);
    svg.addEventListener("pointercancel", stop);
    svg.addEventListener("dblclick", e => {
      if (!panel.inside(at(e))) return;
      panel.zoom();
      panel.hover(at(e), e);
    });
  }
})();
